import { describe, expect, it } from '@jest/globals';
import { repositorySegments } from './repository-path.js';

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
