import { expect, it } from '@jest/globals';
import { eventFileName } from './conversation-export.js';

it.each([
  [0, 'c0ffee-1', 'event_000000_c0ffee-1.json'],
  [1_234_567, 'a', 'event_1234567_a.json'],
  [2, '../../etc/passwd', 'event_000002_______etc_passwd.json'],
  [3, '', 'event_000003_.json'],
  [4, 'é\u0000', 'event_000004___.json'],
  [5, 'x'.repeat(200), `event_000005_${'x'.repeat(100)}.json`],
])('names event %d with the id %j %s', (index, id, expected) => {
  expect(eventFileName(index, id)).toBe(expected);
});
