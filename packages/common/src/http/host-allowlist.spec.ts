import { describe, expect, it } from '@jest/globals';
import { HostAllowlist, isLoopbackHost, OutboundAddresses } from './host-allowlist.js';

describe('HostAllowlist', () => {
  it.each<[string, string, boolean]>([
    ['git.example.com', 'https://git.example.com/any?path#x', true],
    ['git.example.com', 'https://git.example.com:443', true],
    ['git.example.com', 'https://GIT.example.com.', true],
    ['GIT.Example.com.', 'https://git.example.com', true],
    [' git.example.com ', 'https://git.example.com', true],
    ['git.example.com:443', 'https://git.example.com', true],
    ['git.example.com', 'https://git.example.com:8443', false],
    ['git.example.com', 'http://git.example.com', false],
    ['git.example.com', 'http://git.example.com:443', false],
    ['git.example.com', 'https://sub.git.example.com', false],
    ['git.example.com', 'https://evilgit.example.com', false],
    ['git.example.com', 'https://git.example.com.evil.com', false],
    ['git.example.com', 'ftp://git.example.com', false],
    ['git.example.com:8443', 'https://git.example.com:8443', true],
    ['git.example.com:8443', 'https://git.example.com', false],
    ['*.example.com', 'https://git.example.com', true],
    ['*.example.com', 'https://a.b.example.com.', true],
    ['*.example.com', 'https://example.com', false],
    ['*.example.com', 'https://.example.com', false],
    ['*.example.com', 'https://evilexample.com', false],
    ['*.example.com', 'https://git.example.com:8443', false],
    ['*.example.com', 'http://git.example.com', false],
    ['*.example.com:8443', 'https://git.example.com:8443', true],
    ['http://127.0.0.1:9101', 'http://127.0.0.1:9101/x', true],
    ['http://127.0.0.1:9101/', 'http://127.1:9101', true],
    ['http://127.0.0.1:9101', 'http://127.0.0.1:9102', false],
    ['http://127.0.0.1:9101', 'https://127.0.0.1:9101', false],
    ['http://git.example.com', 'http://git.example.com:80', true],
    ['http://git.example.com', 'https://git.example.com', false],
    ['https://git.example.com:8443', 'https://git.example.com:8443', true],
    ['10.0.0.7', 'https://10.0.0.7', true],
    ['[::1]', 'https://[0:0:0:0:0:0:0:1]', true],
    ['[::1]:8443', 'https://[::1]:8443', true],
    ['localhost', 'https://localhost', true],
    ['bücher.example', 'https://xn--bcher-kva.example', true],
  ])('%j and %s: %s', (entry, address, allowed) => {
    expect(HostAllowlist.parse([entry]).allows(new URL(address))).toBe(allowed);
  });

  it.each([
    ['*.example.com', 'https://git.example.com', 'network'],
    ['*.example.com,git.example.com', 'https://git.example.com', 'any'],
    ['*.example.com,git.example.com', 'https://other.example.com', 'network'],
    ['*.example.com,https://git.example.com:8443', 'https://git.example.com', 'network'],
    ['git.example.com:8443', 'https://git.example.com:8443', 'any'],
    ['http://127.0.0.1:9101', 'http://127.0.0.1:9101', 'any'],
    ['*.example.com', 'http://git.example.com', 'public'],
    ['', 'https://git.example.com', 'public'],
  ])('of %j: %s reaches %s', (entries, address, reach) => {
    expect(HostAllowlist.parse(entries.split(',')).reachOf(new URL(address))).toBe(reach);
  });

  it('allows what any entry allows, and nothing without entries', () => {
    const list = HostAllowlist.parse(['a.example', '', '  ', '*.b.example']);

    expect(list.allows(new URL('https://a.example'))).toBe(true);
    expect(list.allows(new URL('https://x.b.example'))).toBe(true);
    expect(list.allows(new URL('https://c.example'))).toBe(false);
    expect(HostAllowlist.parse([]).allows(new URL('https://a.example'))).toBe(false);
  });

  it.each([
    ...'* *. *.*.example.com git.*.example.com *example.com *.0.0.1 *.1 *.[::1] . ::1'.split(' '),
    ...'*.https://example.com https://*.example.com ftp://git.example.com https://'.split(' '),
    ...'git.example.com/path https://git.example.com/path https://git.example.com?x'.split(' '),
    ...'https://git.example.com#x https://user@git.example.com user:password@git.example.com'.split(' '),
    ...'git.example.com:port git.example.com:99999 a.example,b.example/'.split(' '),
    'git.example.com\\x',
    'git.exa mple.com',
    'git.exa\tmple.com',
  ])('refuses the entry %j by name', (entry) => {
    expect(() => HostAllowlist.parse(['good.example', entry])).toThrow(entry);
  });
});

describe('OutboundAddresses', () => {
  it('allows every host without a list', () => {
    expect(new OutboundAddresses(null).problem('https://anything.example')).toBeNull();
  });

  it.each([
    ['https://llm.example.com/v1', true],
    ['wss://llm.example.com/socket', true],
    ['https://a.tools.example.com', true],
    ['http://127.0.0.1:9101/sse', true],
    ['ws://127.0.0.1:9101', true],
    ['http://llm.example.com', false],
    ['https://llm.example.com:8443', false],
    ['https://other.example.com', false],
    ['not an address', false],
  ])('%s allowed: %s', (address, allowed) => {
    const addresses = new OutboundAddresses([
      'llm.example.com',
      '*.tools.example.com',
      'http://127.0.0.1:9101',
    ]);
    expect(addresses.problem(address) === null).toBe(allowed);
  });

  it('allows nothing with an empty list', () => {
    expect(new OutboundAddresses([]).problem('https://anything.example')).not.toBeNull();
  });
});

it.each([
  [true, 'localhost LOCALHOST localhost. app.localhost 127.0.0.1 127.1.2.3'],
  [true, '::1 [::1] ::ffff:127.0.0.1 [::ffff:7f00:1]'],
  [false, ' example.com localhost.example.com notlocalhost 127.example.com 127.0.0.1.example.com'],
  [false, '127.1 0.0.0.0 :: [::] 10.0.0.1 ::ffff:10.0.0.1 [::1'],
])('isLoopbackHost is %s of %s', (expected, hosts) => {
  expect(hosts.split(' ').filter((host) => isLoopbackHost(host) !== expected)).toEqual([]);
});
