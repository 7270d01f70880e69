import { describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { parseGitHost } from './git-host.js';
import type { ProviderType } from './git-provider.js';
import { gitHostBaseUrl } from './public-git-servers.js';

const NOTHING = HostAllowlist.parse([]);
const OPERATOR = HostAllowlist.parse([
  'git.example.com',
  'gitlab.example.com:8443',
  '*.corp.example',
  'http://127.0.0.1:9101',
  'https://10.0.0.7',
  'https://[::1]:9443',
  'gitserver',
  'bücher.example',
  // Operators' own API addresses are allowlisted too.
  'https://gitlab.com',
]);

describe('parseGitHost', () => {
  describe("the provider's own service", () => {
    it.each<[string, ProviderType]>([
      ['', 'github'],
      ['  ', 'enterprise_sso'],
      ['github.com', 'github'],
      [' github.com ', 'github'],
      ['GitHub.COM', 'github'],
      ['github.com.', 'github'],
      ['github.com/', 'github'],
      ['github.com:443', 'github'],
      ['https://github.com', 'github'],
      ['HTTPS://github.com/', 'github'],
      ['https://GITHUB.com./', 'github'],
      ['gitlab.com', 'gitlab'],
      ['https://gitlab.com/', 'gitlab'],
      ['bitbucket.org', 'bitbucket'],
      ['https://bitbucket.org', 'bitbucket'],
    ])('%j for %s', (input, provider) => {
      expect(parseGitHost(input, provider, NOTHING)).toEqual({ host: null });
    });
  });

  describe('hosts an operator listed', () => {
    it.each<[string, ProviderType, string]>([
      ['git.example.com', 'gitlab', 'git.example.com'],
      ['https://git.example.com/', 'gitlab', 'git.example.com'],
      ['GIT.Example.com.', 'github', 'git.example.com'],
      ['https://git.example.com:443', 'gitlab', 'git.example.com'],
      ['git.example.com/context', 'bitbucket', 'git.example.com/context'],
      ['https://git.example.com/relative/root/', 'gitlab', 'git.example.com/relative/root'],
      ['git.example.com/~team-1/v1.2_x', 'bitbucket', 'git.example.com/~team-1/v1.2_x'],
      ['gitlab.example.com:8443', 'gitlab', 'gitlab.example.com:8443'],
      ['https://gitlab.example.com:8443/git', 'gitlab', 'gitlab.example.com:8443/git'],
      ['a.b.corp.example', 'github', 'a.b.corp.example'],
      ['http://127.0.0.1:9101', 'gitlab', 'http://127.0.0.1:9101'],
      ['http://127.1:9101/', 'gitlab', 'http://127.0.0.1:9101'],
      ['127.0.0.1:9101', 'github', 'http://127.0.0.1:9101'],
      ['127.0.0.1:9101/git/', 'gitlab', 'http://127.0.0.1:9101/git'],
      ['http://127.0.0.1:9101/git', 'bitbucket', 'http://127.0.0.1:9101/git'],
      ['10.0.0.7', 'github', '10.0.0.7'],
      ['https://[0:0::1]:9443', 'github', '[::1]:9443'],
      ['gitserver', 'gitlab', 'gitserver'],
      ['BÜCHER.example', 'gitlab', 'xn--bcher-kva.example'],
      ['xn--bcher-kva.example', 'gitlab', 'xn--bcher-kva.example'],
      ['git。example。com', 'gitlab', 'git.example.com'],
    ])('%j for %s', (input, provider, host) => {
      expect(parseGitHost(input, provider, OPERATOR)).toEqual({ host });
    });
  });

  describe('refused even with an allowlist', () => {
    it.each<[string, string, ProviderType]>([
      ['another provider', 'gitlab.com', 'github'],
      ['another provider, listed', 'https://gitlab.com/', 'bitbucket'],
      ['another provider', 'github.com', 'gitlab'],
      ['a path on the own service', 'gitlab.com/group', 'gitlab'],
      ['plain http to the own service', 'http://github.com', 'github'],
      ['another port of the own service', 'github.com:8443', 'github'],
      ['a host for enterprise_sso', 'git.example.com', 'enterprise_sso'],
      ['an unlisted host', 'evil.com', 'gitlab'],
      ['a name below the own service', 'api.github.com', 'github'],
      ['the own service as a prefix', 'github.com.evil.com', 'github'],
      ['the own service as user info', 'https://github.com@evil.com', 'github'],
      ['user info before a listed host', 'https://user:secret@git.example.com', 'gitlab'],
      ['an empty user before a listed host', 'https://@git.example.com', 'gitlab'],
      ['an encoded at sign', 'https://github.com%40evil.com', 'github'],
      ['an encoded letter', '%67ithub.com', 'github'],
      ['a backslash', 'https://evil.com\\@git.example.com', 'gitlab'],
      ['a backslash as a slash', 'git.example.com\\x', 'gitlab'],
      ['a listed host on another port', 'git.example.com:8443', 'gitlab'],
      ['a listed port on another host', 'evil.com:8443', 'gitlab'],
      ['a listed host:port without port', 'gitlab.example.com', 'gitlab'],
      ['http where https is listed', 'http://git.example.com', 'gitlab'],
      ['https where http is listed', 'https://127.0.0.1:9101', 'gitlab'],
      ['the bare suffix', 'corp.example', 'gitlab'],
      ['the suffix without a dot', 'evilcorp.example', 'gitlab'],
      ['a path for GitHub', 'git.example.com/context', 'github'],
      ['a query', 'git.example.com?x=1', 'gitlab'],
      ['a query after a path', 'git.example.com/x?y', 'gitlab'],
      ['a fragment', 'git.example.com#x', 'gitlab'],
      ['dot segments', 'git.example.com/a/../b', 'gitlab'],
      ['a trailing dot segment', 'git.example.com/..', 'gitlab'],
      ['a single dot segment', 'git.example.com/./x', 'gitlab'],
      ['encoded dot segments', 'git.example.com/%2e%2e/x', 'gitlab'],
      ['matrix parameters', 'git.example.com/..;/', 'gitlab'],
      ['matrix parameters of an unlisted host', 'evil.com/..;/', 'gitlab'],
      ['an empty segment', 'git.example.com//x', 'gitlab'],
      ['two trailing slashes', 'git.example.com//', 'gitlab'],
      ['a space in the path', 'git.example.com/a b', 'gitlab'],
      ['letters outside ASCII in the path', 'git.example.com/é', 'gitlab'],
      ['two trailing dots', 'github.com..', 'github'],
      ['an empty label', 'git..example.com', 'gitlab'],
      ['only dots', '...', 'gitlab'],
      ['loopback', '127.0.0.1', 'gitlab'],
      ['short loopback', '127.1', 'gitlab'],
      ['decimal loopback', '2130706433', 'gitlab'],
      ['hexadecimal loopback', '0x7f000001', 'gitlab'],
      ['octal loopback', '0177.0.0.1', 'gitlab'],
      ['full-width loopback', '１２７.０.０.１', 'gitlab'],
      ['loopback with unicode dots', '127。0。0。1', 'gitlab'],
      ['IPv6 loopback', '[::1]', 'gitlab'],
      ['IPv4 in IPv6', '[::ffff:127.0.0.1]', 'gitlab'],
      ['IPv6 without brackets', '::1', 'gitlab'],
      ['an IPv6 zone', '[fe80::1%25eth0]', 'gitlab'],
      ['the metadata service', '169.254.169.254', 'gitlab'],
      ['a public IP literal', 'https://93.184.216.34', 'gitlab'],
      ['zero', '0', 'gitlab'],
      ['localhost', 'localhost', 'gitlab'],
      ['localhost with a dot', 'localhost.', 'gitlab'],
      ['a single label', 'intranet', 'gitlab'],
      ['mDNS', 'printer.local', 'gitlab'],
      ['a cloud-internal name', 'metadata.google.internal', 'gitlab'],
      ['a cluster name', 'git.default.svc', 'gitlab'],
      ['a tab inside', 'git.exa\tmple.com', 'gitlab'],
      ['a line break inside', 'github.com\n.evil.com', 'github'],
      ['a space inside', 'git.example.com evil.com', 'gitlab'],
      ['a NUL', 'git.example.com\u0000', 'gitlab'],
      ['a header injection', 'git.example.com\r\nX-Evil: 1', 'gitlab'],
      ['a line break in the scheme', 'ht\ntps://git.example.com', 'gitlab'],
      ['a look-alike letter', 'gіthub.com', 'github'],
      ['a look-alike slash', 'github.com⁄.evil.com', 'github'],
      ['an empty punycode label', 'xn--', 'gitlab'],
      ['broken punycode', 'xn--a\u00e4.example', 'gitlab'],
      ['another scheme', 'ftp://git.example.com', 'gitlab'],
      ['a script', 'javascript:alert(1)', 'gitlab'],
      ['a file', 'file:///etc/passwd', 'gitlab'],
      ['no host', 'https://', 'gitlab'],
      ['a third slash', 'https:///git.example.com', 'gitlab'],
      ['no scheme but slashes', '//git.example.com', 'gitlab'],
      ['a scheme without slashes', 'https:git.example.com', 'gitlab'],
      ['two schemes', 'https://https://git.example.com', 'gitlab'],
      ['a port that is no number', 'git.example.com:port', 'gitlab'],
      ['a port out of range', 'git.example.com:99999', 'gitlab'],
      ['a list', 'git.example.com,evil.com', 'gitlab'],
      ['the wildcard itself', '*.corp.example', 'gitlab'],
      ['300 characters', `${'a'.repeat(286)}.corp.example/`, 'gitlab'],
    ])('%s: %j', (_name, input, provider) => {
      expect(parseGitHost(input, provider, OPERATOR)).toBe('refused');
    });
  });

  it.each(['git.example.com', 'http://127.0.0.1:9101', '[::1]:9443', 'git.example.com/context'])(
    'reads its own canonical form %j back unchanged',
    (host) => {
      expect(parseGitHost(host, 'gitlab', OPERATOR)).toEqual({ host });
    },
  );
});

describe('gitHostBaseUrl', () => {
  it.each([
    ['gitlab.example.com', 'https://gitlab.example.com'],
    ['gitlab.example.com:8443', 'https://gitlab.example.com:8443'],
    ['git.example.com/context', 'https://git.example.com/context'],
    ['[::1]:9443', 'https://[::1]:9443'],
    ['http://127.0.0.1:9101', 'http://127.0.0.1:9101'],
  ])('%s', (host, url) => {
    expect(gitHostBaseUrl(host)).toBe(url);
  });
});
