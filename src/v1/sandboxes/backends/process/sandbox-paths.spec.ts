import { expect, it } from '@jest/globals';
import { relativeWorkingDir } from './sandbox-paths.js';

it.each([
  ['workspace', 'workspace'],
  ['work/project/', 'work/project/'],
  ['./a/../b', 'b'],
])('takes the working folder %s', (given, expected) => {
  expect(relativeWorkingDir(given)).toBe(expected);
});

it.each(['/workspace', '..', '../other', 'a/../..', '.', '', 'home', 'conversations/x', 'port'])(
  'refuses the working folder %j',
  (given) => {
    expect(() => relativeWorkingDir(given)).toThrow('working_dir');
  },
);
