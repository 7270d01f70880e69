import { describe, expect, it } from '@jest/globals';
import { matchesPattern } from './path-pattern.js';

describe('matchesPattern', () => {
  it.each([
    ['/octo/app', '/octo/app', true],
    ['/octo/app', '/octo/app?any=1', true],
    ['/octo/app', '/octo/app/', false],
    ['/octo/*', '/octo/app', true],
    ['/octo/*', '/octo/', false],
    ['/octo/*', '/octopus/app', false],
    ['/octo/*/git-upload-pack', '/octo/app.git/git-upload-pack', true],
    ['/octo/*/git-upload-pack', '/octo/app.git/git-receive-pack', false],
    ['/octo/*/git-upload-pack', '/octo/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo//git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/../../evil/app/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/%2e%2e/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/evil/octo/app/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack?/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack#/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack;/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack%3f/git-upload-pack', false],
    ['/octo/*/git-upload-pack', '/octo/app/git-receive-pack%23/git-upload-pack', false],
    ['/o/*/info/refs?service=git-upload-pack', '/o/a/info/refs?service=git-upload-pack', true],
    ['/o/*/info/refs?service=git-upload-pack', '/o/a/info/refs?service=git-receive-pack', false],
    ['/o/*/info/refs?service=git-upload-pack', '/o/a/info/refs', false],
    [
      '/o/*/info/refs?service=git-upload-pack',
      '/o/a/info/refs?service=git-upload-pack&service=git-receive-pack',
      false,
    ],
    [
      '/o/*/info/refs?service=git-upload-pack',
      '/o/a/info/refs?service=git-upload-pack?service=git-receive-pack',
      false,
    ],
    ['/p/a%2fb%2F*/raw/*', '/p/a%2Fb%2fc/raw/x', true],
    ['/p/a%2Fb%2F*/raw/*', '/p/a/b/c/raw/x', false],
    ['/a/*/b/*/c', '/a/1/b/2/c', true],
    ['/a/*/b/*/c', '/a/1/b/c', false],
  ])('%s for %s: %s', (pattern, path, isMatching) => {
    expect(matchesPattern(pattern, path)).toBe(isMatching);
  });
});
