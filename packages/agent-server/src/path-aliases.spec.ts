import { describe, expect, it } from '@jest/globals';
import { parseAlias, resolvePath } from './tool-view.js';

const ALIASES = ['/workspace=/box/shared', '/workspace/project=/box/work'].map(parseAlias);

describe('paths of clients', () => {
  it.each([
    ['.', '/box/work'],
    ['a/b', '/box/work/a/b'],
    ['/workspace/project', '/box/work'],
    ['/workspace/project/', '/box/work'],
    ['/workspace/project/repo/a b', '/box/work/repo/a b'],
    ['/workspace//project/./repo', '/box/work/repo'],
    ['/workspace/project/../upload', '/box/shared/upload'],
    ['/workspace', '/box/shared'],
    ['/workspace/projects', '/box/shared/projects'],
    ['/workspace/project/../../etc/passwd', '/etc/passwd'],
    ['/workspaces/project', '/workspaces/project'],
    ['/box/work/repo', '/box/work/repo'],
    ['/tmp/a', '/tmp/a'],
    ['/', '/'],
  ])('%s is %s', (given, expected) => {
    expect(resolvePath(ALIASES, '/box/work', given)).toBe(expected);
  });

  it('keeps a folder whose own name is below an alias', () => {
    const aliases = [
      { name: '/workspace', folder: '/workspace/data/shared' },
      { name: '/workspace/project', folder: '/workspace/data/box' },
    ];
    expect(resolvePath(aliases, '/workspace/data/box', 'a')).toBe('/workspace/data/box/a');
    expect(resolvePath(aliases, '/', '/workspace/project/a')).toBe('/workspace/data/box/a');
  });

  it('takes the path as it is without aliases', () => {
    expect(resolvePath([], '/', '/workspace/project/a')).toBe('/workspace/project/a');
  });
});

it.each(['', '/a', 'a=/b', '/a=b', '/a=/b=/c'])('refuses %j as an alias', (text) => {
  expect(() => parseAlias(text)).toThrow('--alias must be NAME=FOLDER');
});
