import { describe, expect, it } from '@jest/globals';
import { canonicalPath, matchesPath, parseAbsoluteForm, parseAuthority, shownTarget } from './target.js';

describe('parseAuthority', () => {
  it.each([
    ['api.github.com:443', 'api.github.com', 443],
    ['API.GitHub.com:443', 'api.github.com', 443],
    ['api.github.com.:443', 'api.github.com', 443],
    ['bücher.example:443', 'xn--bcher-kva.example', 443],
    ['127.0.0.1:80', '127.0.0.1', 80],
    ['0177.0.0.1:80', '127.0.0.1', 80],
    ['2130706433:80', '127.0.0.1', 80],
    ['0x7f.1:80', '127.0.0.1', 80],
    ['127.1:80', '127.0.0.1', 80],
    ['127.0.0.1.:80', '127.0.0.1', 80],
    ['１２７.0.0.1:80', '127.0.0.1', 80],
    ['[::1]:443', '::1', 443],
    ['[0:0:0:0:0:0:0:1]:443', '::1', 443],
    ['[::ffff:127.0.0.1]:443', '::ffff:7f00:1', 443],
    ['registry_1.example:443', 'registry_1.example', 443],
  ])('%s', (text, host, port) => {
    expect(parseAuthority(text, { isTls: true, defaultPort: null })).toMatchObject({ host, port });
  });

  it.each([
    '',
    'api.github.com',
    'api.github.com:0',
    'api.github.com:65536',
    'api.github.com:443:443',
    'user@api.github.com:443',
    'api.github.com/path:443',
    'api.github.com%2eexample:443',
    'api.github.com\\.example:443',
    'a..b:443',
    '.example:443',
    '256.256.256.256:443',
    '1.2.3.4.5:443',
    '::1:443',
    '[::1%25eth0]:443',
    '[::1:443',
    `${'a'.repeat(64)}.example:443`,
    'api.github.com\t:443',
  ])('refuses %j', (text) => {
    expect(parseAuthority(text, { isTls: true, defaultPort: null })).toBeNull();
  });

  it('tells addresses from names, and writes both as a URL does', () => {
    const target = (text: string) => parseAuthority(text, { isTls: true, defaultPort: 443 });
    expect(
      [target('1.2.3.4'), target('[::1]'), target('one.example')].map((each) => each?.isAddress),
    ).toEqual([true, true, false]);
    const shown = [target('[::1]:8443'), target('one.example:80'), target('one.example:443')];
    expect(shown.map((each) => each && shownTarget(each))).toEqual([
      '[::1]:8443',
      'one.example:80',
      'one.example',
    ]);
  });
});

describe('parseAbsoluteForm', () => {
  it.each([
    ['http://one.example', 'one.example', 80, '/'],
    ['HTTP://one.example:8080/a/../b?c=d', 'one.example', 8080, '/a/../b?c=d'],
    ['http://one.example?c=d', 'one.example', 80, '/?c=d'],
  ])('%s', (url, host, port, path) => {
    expect(parseAbsoluteForm(url)).toMatchObject({ target: { host, port, isTls: false }, path });
  });

  it.each([
    '/path',
    'https://one.example/',
    'ftp://one.example/',
    'http:///path',
    'http://u:p@one.example/',
    'http://one.example/#a',
    '*',
  ])('refuses %s', (url) => {
    expect(parseAbsoluteForm(url)).toBeNull();
  });
});

describe('canonicalPath', () => {
  it.each([
    ['/repos/a/b?x=/../', '/repos/a/b'],
    ['/%61%7e%40', '/a~@'],
    ['/group%2fname', '/group%2Fname'],
    ['/a/', '/a/'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a..b/...', '/a..b/...'],
  ])('%s', (path, canonical) => {
    expect(canonicalPath(path)).toBe(canonical);
  });

  it.each([
    'no/slash',
    '/a/../b',
    '/a/./b',
    '/a/..',
    '/a/%2e%2E/b',
    '/a/.%2e/b',
    '/a%2f..%2fb',
    '/a/..;/b',
    '/a/..%3bx/b',
    '/a//b',
    '//a',
    '/a%2f/b',
    '/a/%2fb',
    '/a\\..\\b',
    '/a/%5c../b',
    '/a/%252e%252e/b',
    '/a%00',
    '/a%0d%0a',
    '/a%zz',
    '/a%2',
    '/ü',
  ])('is ambiguous: %s', (path) => {
    expect(canonicalPath(path)).toBeNull();
  });
});

describe('matchesPath', () => {
  it.each([
    ['/v1/models', '/v1/models', true],
    ['/v1/models', '/v1/models/x', false],
    ['/v1/*', '/v1/models', true],
    ['/v1/*', '/v1', false],
    ['/v1/*', '/v10/models', false],
    ['/projects/group%2fname/*', '/projects/group%2Fname/issues', true],
    ['/projects/group/name/*', '/projects/group%2Fname/issues', false],
    ['*', '/anything', true],
    ['*', null, false],
  ])('%s, %s: %s', (rule, path, isMatch) => {
    expect(matchesPath(rule, path)).toBe(isMatch);
  });
});
