import { describe, expect, it } from '@jest/globals';
import {
  isBranchName,
  repositorySegments,
  requireOwnerAndName,
  requireRepositoryPath,
} from './repository-name.js';

describe('repositorySegments', () => {
  it.each([
    ['octo/app', ['octo', 'app']],
    ['octo/.github', ['octo', '.github']],
    ['octo/app.js', ['octo', 'app.js']],
    ['user_company/my-repo', ['user_company', 'my-repo']],
    ['group/sub/project', ['group', 'sub', 'project']],
    ['PROJ/slug', ['PROJ', 'slug']],
    ['~jane/slug', ['~jane', 'slug']],
  ])('splits %s', (name, segments) => {
    expect(repositorySegments(name)).toEqual(segments);
  });

  it.each([
    '',
    'app',
    '/app',
    'octo/',
    'octo//app',
    'octo/..',
    '../app',
    'octo/./app',
    'octo/-upload-pack',
    '-octo/app',
    'octo/ap p',
    'octo/app\n',
    'octo/app\u0000',
    'octo/app?x=1',
    'octo/app#x',
    'octo/%2e%2e',
    'octo/app@host',
    'https://github.com/octo/app',
    'octo\\app',
    'octo/~',
    'octo/äpp',
    `octo/${'a'.repeat(600)}`,
    Array.from({ length: 23 }, () => 'a').join('/'),
  ])('takes no %j', (name) => {
    expect(repositorySegments(name)).toBeNull();
  });

  it('counts the parts', () => {
    expect(repositorySegments('group/sub/project', 2)).toBeNull();
  });
});

describe('the names that adapters take', () => {
  it('are two parts, or a path', () => {
    expect(requireOwnerAndName('octo/app')).toEqual(['octo', 'app']);
    expect(requireRepositoryPath('group/sub/project')).toBe('group/sub/project');
  });

  it('are refused with a reason', () => {
    expect(() => requireOwnerAndName('group/sub/project')).toThrow(
      expect.objectContaining({ reason: 'the repository is not named owner/name' }),
    );
    expect(() => requireRepositoryPath('../x')).toThrow(
      expect.objectContaining({ reason: 'the repository is not named group/name' }),
    );
  });
});

describe('isBranchName', () => {
  it.each([
    'main',
    'fix/parser',
    'feature/parser',
    'fix-1.2',
    'release-1.2',
    'müller/fix',
    'Zweig-ä',
    'a@b',
    '#12',
    'v1.0_x',
    'x'.repeat(250),
  ])('is true for %s', (name) => {
    expect(isBranchName(name)).toBe(true);
  });

  it.each([
    '',
    '-d',
    '-f',
    '--force',
    '--upload-pack=x',
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
    'a\nb',
    'x'.repeat(251),
  ])('is false for %j', (name) => {
    expect(isBranchName(name)).toBe(false);
  });
});
