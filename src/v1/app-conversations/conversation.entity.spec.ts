import { describe, expect, it } from '@jest/globals';
import { taskTitle } from './conversation.entity.js';

describe('the title of a suggested task', () => {
  it.each<[Record<string, unknown> | null, string | null]>([
    [{ title: ' Retry\nonce ' }, 'Retry once'],
    [{ title: 'x'.repeat(300) }, 'x'.repeat(200)],
    [{ title: ' ' }, null],
    [{}, null],
    [null, null],
  ])('%j is %j', (task, title) => {
    expect(taskTitle(task)).toBe(title);
  });
});
