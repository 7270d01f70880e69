import { expect, it } from '@jest/globals';
import { branchNameProblem } from './pull-request.dto.js';

it.each([
  ['fix/parser', null],
  ['', 'Expected the name of a branch, of 1 to 250 characters.'],
  ['a'.repeat(251), 'Expected the name of a branch, of 1 to 250 characters.'],
  ['--force', 'Expected the name of a branch such as fix/parser.'],
  ['a\n', 'Expected the name of a branch such as fix/parser.'],
])('checks a branch named %j: %s', (name, expected) => {
  expect(branchNameProblem(name)).toBe(expected);
});
