import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';

/** Gone when it is compiled, with its lines. */
interface Named {
  name: string;
}

it('names the lines of a test as they are in its source', () => {
  const error: Named & Error = new Error('thrown here');

  const [, line] = /stack-lines\.spec\.ts:(\d+)/.exec(error.stack ?? '') ?? [];
  expect(readFileSync(__filename, 'utf8').split('\n')[Number(line) - 1]).toContain('thrown here');
});
