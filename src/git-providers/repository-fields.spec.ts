import { expect, it } from '@jest/globals';
import { branchProblem, repositoryProblem } from './repository-fields.js';

it.each(['octo/app', 'group/sub/app', '~ada/notes', 'PROJ/app.js'])('%s is a repository', (name) => {
  expect(repositoryProblem(name)).toBeNull();
});

it.each(['', 'app', 'https://github.com/octo/app', 'octo/..', 'octo/app\n'])('%j is none', (name) => {
  expect(repositoryProblem(name)).toMatch(/^Expected/);
});

it('a branch has the name of one', () => {
  expect(branchProblem('feature/parser')).toBeNull();
  expect(branchProblem('--upload-pack=x')).toMatch(/^Expected/);
});
