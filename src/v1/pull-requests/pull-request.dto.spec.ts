import { describe, expect, it } from '@jest/globals';
import { branchNameProblem } from './pull-request.dto.js';

describe('branchNameProblem', () => {
  it.each(['main', 'fix/parser', 'release-1.2', 'müller/fix', 'a@b', '#12', 'v1.0_x'])('takes %s', (name) => {
    expect(branchNameProblem(name)).toBeNull();
  });

  it.each([
    '',
    '-d',
    '--force',
    '/a',
    'a/',
    'a//b',
    '.a',
    'a/.b',
    'a..b',
    'a.',
    'a.lock',
    'a.lock/b',
    'a b',
    'a:b',
    'a~1',
    'a^',
    'a?',
    'a*',
    'a[1]',
    'a\\b',
    'a@{1}',
    '@',
    'a\u0000',
    'a\u007f',
    'a\n',
    'a'.repeat(251),
  ])('takes no %j', (name) => {
    expect(branchNameProblem(name)).toMatch(/^Expected the name of a branch/);
  });
});
