import { describe, expect, it } from '@jest/globals';
import { branchProblem, repositoryProblem } from './repository-fields.js';

describe('repositoryProblem', () => {
  it.each(['octo/app', 'group/sub/app', '~ada/notes', 'PROJ/app.js'])('takes %s', (name) => {
    expect(repositoryProblem(name)).toBeNull();
  });

  it.each([
    '',
    'app',
    'https://github.com/octo/app',
    '../app',
    'octo/..',
    '-o/app',
    'octo/a b',
    'octo/app\n',
  ])('refuses %j', (name) => {
    expect(repositoryProblem(name)).toMatch(/^Expected/);
  });
});

describe('branchProblem', () => {
  it.each(['main', 'feature/parser', 'fix-1.2'])('takes %s', (name) => {
    expect(branchProblem(name)).toBeNull();
  });

  it.each(['', '-f', '--upload-pack=x', 'a..b', 'x'.repeat(251)])('refuses %j', (name) => {
    expect(branchProblem(name)).toMatch(/^Expected/);
  });
});
