import { expect, it } from '@jest/globals';
import { readReply } from './trial-requests.js';

it('reads as many lines as a short answer has, however many come', () => {
  const answer = 'data:{"choices":[{"delta":{"content":"yes"}}]}\n';
  expect(readReply(`${'data:\n'.repeat(5_000)}${answer}`)?.text).toBe('yes');
  expect(readReply(`${'data:\n'.repeat(10_000)}${answer}`)).toBeNull();
});
