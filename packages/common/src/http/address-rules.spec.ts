import type { LookupAddress, LookupOptions } from 'node:dns';
import { describe, expect, it } from '@jest/globals';
import {
  addressProblem,
  AddressRefusedError,
  bypassesProxy,
  checkedLookup,
  destinationsOf,
  exemptIfInRange,
  isPrivateAddress,
  isPublicAddress,
  isPublicHostName,
  parseDestination,
  type ResolveHost,
  shownAddress,
} from './address-rules.js';
import type { AddressReach } from './host-allowlist.js';

const SCHEMES = ['http', 'https', 'ws', 'wss'];

describe('addressProblem', () => {
  it.each([
    'http://a',
    'https://mcp.example.com/sse?team=1#x',
    'ws://127.0.0.1:9000',
    'WSS://example.com',
    'http://[::1]:80/',
    'https://example.com//double//slash',
    'https://bücher.example',
    `https://${Array.from({ length: 63 }, () => 'abc').join('.')}.`,
  ])('accepts %s', (address) => {
    expect(addressProblem(address, SCHEMES)).toBeNull();
  });

  it.each([
    ['', 'empty'],
    ['x', 'starts with http://, https://, ws:// or wss://'],
    ['example.com:80', 'starts with'],
    ['http:/example.com', 'starts with'],
    ['://example.com', 'starts with'],
    ['ftp://x', 'scheme http, https, ws or wss'],
    ['constructor://x', 'scheme'],
    ['javascript://x', 'scheme'],
    ['http://', 'valid host'],
    ['http:///example.com', 'valid host'],
    ['http://?q', 'valid host'],
    ['http://:80', 'valid host'],
    [`https://${Array.from({ length: 64 }, () => 'abc').join('.')}`, 'valid host'],
    ['https://example.com:0/', 'port from 1'],
    ['http://a b', 'white space'],
    ['http://a\nb', 'white space'],
    ['http://allowed.example\\@other.example', 'backslashes'],
    ['https://user:secret@example.com', 'user name or password'],
    ['https://user@example.com', 'user name or password'],
  ])('refuses %j, and does not repeat it', (address, expected) => {
    expect(addressProblem(address, SCHEMES)).toContain(expected);
    expect(addressProblem(address, SCHEMES)).not.toContain('secret');
  });
});

const PUBLIC: LookupAddress = { address: '93.184.216.34', family: 4 };
const PUBLIC_IPV6: LookupAddress = { address: '2606:4700:4700::1111', family: 6 };
const PRIVATE: LookupAddress = { address: '10.0.0.7', family: 4 };
const LOOPBACK_IPV6: LookupAddress = { address: '::1', family: 6 };

async function run(
  resolve: ResolveHost,
  reach: AddressReach,
  options: LookupOptions = { all: true },
): Promise<{ address: string | LookupAddress[]; family: number | undefined }> {
  return await new Promise((settle, reject) => {
    checkedLookup(resolve, reach)('git.example.com', options, (error, address, family) => {
      if (error) {
        reject(error);
      } else {
        settle({ address, family });
      }
    });
  });
}

describe('checkedLookup', () => {
  it.each<[string, LookupAddress[]]>([
    ['one public address', [PUBLIC]],
    ['public addresses of both families', [PUBLIC_IPV6, PUBLIC]],
  ])('hands on %s', async (_name, addresses) => {
    expect(await run(() => Promise.resolve(addresses), 'public')).toEqual({ address: addresses });
  });

  it('hands on the first address where one is asked for', async () => {
    const answer = await run(() => Promise.resolve([PUBLIC_IPV6, PUBLIC]), 'public', { all: false });

    expect(answer).toEqual({ address: PUBLIC_IPV6.address, family: 6 });
  });

  it.each<[string, LookupAddress[]]>([
    ['a private address', [PRIVATE]],
    ['a private address behind a public one', [PUBLIC, PRIVATE]],
    ['a private address before a public one', [LOOPBACK_IPV6, PUBLIC]],
  ])('refuses %s', async (_name, addresses) => {
    await expect(run(() => Promise.resolve(addresses), 'public')).rejects.toBeInstanceOf(AddressRefusedError);
    await expect(run(() => Promise.resolve(addresses), 'any')).resolves.toEqual({ address: addresses });
  });

  it('resolves once, so the name cannot change its mind between check and use', async () => {
    const answers = [[PUBLIC], [PRIVATE]];
    let asked = 0;
    const rebinding: ResolveHost = () => Promise.resolve(answers[asked++] ?? []);

    expect(await run(rebinding, 'public')).toEqual({ address: [PUBLIC] });
    expect(asked).toBe(1);
    await expect(run(rebinding, 'public')).rejects.toBeInstanceOf(AddressRefusedError);
  });

  it.each<AddressReach>(['public', 'network', 'any'])(
    'fails for a name without addresses (%s)',
    async (reach) => {
      await expect(run(() => Promise.resolve([]), reach)).rejects.toThrow('no address');
    },
  );

  it('hands on why a name did not resolve', async () => {
    const failure = Object.assign(new Error('not found'), { code: 'ENOTFOUND' });

    await expect(run(() => Promise.reject(failure), 'public')).rejects.toBe(failure);
  });
});

const PUBLIC_NAMES =
  'example.com git.example.com git.example.com. xn--bcher-kva.example mylocal.com a.svc.io'.split(' ');
const OTHER_NAMES = (
  ' . intranet intranet. localhost app.localhost LOCALHOST. printer.local host.localdomain ' +
  'metadata.google.internal metadata.google.internal. git.default.svc router.lan router.home.arpa ' +
  '127.0.0.1 93.184.216.34 [::1] [2606:4700:4700::1111]'
).split(' ');

it.each([
  [true, PUBLIC_NAMES],
  [false, OTHER_NAMES],
])('isPublicHostName is %s', (expected, hosts) => {
  expect(hosts.filter((host) => isPublicHostName(host) !== expected)).toEqual([]);
});

describe('bypassesProxy', () => {
  it.each<[string, string, boolean]>([
    ['', 'https://git.example.com', false],
    ['*', 'https://git.example.com', true],
    ['git.example.com', 'https://git.example.com', true],
    ['GIT.Example.com', 'https://git.example.com.', true],
    ['example.com', 'https://git.example.com', true],
    ['example.com', 'https://badexample.com', false],
    ['.example.com', 'https://git.example.com', true],
    ['.example.com', 'https://example.com', false],
    ['*.example.com', 'https://git.example.com', true],
    ['*.example.com', 'https://example.com', false],
    ['a.example, b.example', 'https://b.example', true],
    ['a.example b.example', 'https://b.example', true],
    ['a.example,,', 'https://b.example', false],
    ['git.example.com:8443', 'https://git.example.com:8443', true],
    ['git.example.com:8443', 'https://git.example.com', false],
    ['git.example.com:443', 'https://git.example.com', true],
    ['git.example.com:80', 'http://git.example.com', true],
    ['10.0.0.7', 'https://10.0.0.7', true],
    ['fd00::1', 'https://[fd00::1]', true],
    ['[fd00::1]', 'https://[fd00::1]', true],
    ['[fd00::1]:8443', 'https://[fd00::1]:8443', true],
    ['[fd00::1]:8443', 'https://[fd00::1]', false],
    ['10.0.0.0/8', 'https://10.20.30.40:8443', true],
    ['10.0.0.0/8,fd00::/8', 'https://[fd12::7]', true],
    ['10.0.0.0/8,fd00::/8', 'https://11.0.0.1', false],
    ['10.0.0.0/8', 'https://10.example.com', false],
    ['10.0.0.0/99', 'https://10.0.0.1', false],
    ['', 'https://127.0.0.2', true],
    ['', 'https://[::1]:8443', true],
    ['', 'https://localhost', true],
    ['', 'https://gitea.git.svc', true],
    ['', 'https://gitea.git.svc.cluster.local:3000', true],
  ])('%j and %s: %s', (noProxy, address, bypassed) => {
    expect(bypassesProxy(new URL(address), noProxy)).toBe(bypassed);
  });
});

describe('exemptIfInRange', () => {
  it.each([
    ['10.0.0.0/8,a', 'http://10.2.3.4:8000/v1', '10.0.0.0/8,a,10.2.3.4'],
    ['fd00::/8', 'https://[fd12::7]/v1', 'fd00::/8,[fd12::7]'],
    ['fd00::7,::1', 'http://[::1]:8000/', 'fd00::7,::1,[::1]'],
    ['10.0.0.0/8', 'http://11.2.3.4/', undefined],
    ['10.0.0.0/8,10.2.3.4', 'http://10.2.3.4/', undefined],
    ['10.0.0.0/8', 'http://model.example/', undefined],
    ['*', 'http://10.2.3.4/', undefined],
  ])('with NO_PROXY=%s and %s: %s', (noProxy, address, expected) => {
    const environment: NodeJS.ProcessEnv = { NO_PROXY: noProxy };
    exemptIfInRange(new URL(address), environment);
    expect(environment['no_proxy']).toBe(expected);
  });
});

describe('isPublicAddress', () => {
  it.each([
    ['IPv4', '1.1.1.1 93.184.216.34 140.82.112.3 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0'],
    ['the last before multicast', '223.255.255.255'],
    ['IPv6', '2606:4700:4700::1111 2a04:4e42::81'],
    ['mapped, NAT64', '::ffff:93.184.216.34 64:ff9b::5db8:d822'],
  ])('takes %s', (_name, addresses) => {
    expect(addresses.split(' ').filter((ip) => !isPublicAddress(ip))).toEqual([]);
  });

  it.each([
    ['unspecified, this network', '0.0.0.0 0.1.2.3'],
    ['loopback', '127.0.0.1 127.255.255.254'],
    ['private', '10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1'],
    ['carrier-grade NAT', '100.64.0.1 100.127.255.255'],
    ['metadata services, link-local', '169.254.169.254 169.254.0.1'],
    ["Azure's metadata", '168.63.129.16 ::ffff:168.63.129.16'],
    ['IETF protocol assignments', '192.0.0.1'],
    ['documentation', '192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1'],
    ['benchmarking', '198.18.0.1 198.19.255.255 2001:2::1'],
    ['6to4', '192.88.99.1 2002:7f00:1::1 2002:5db8:d822::1'],
    ['multicast, reserved, broadcast', '224.0.0.1 240.0.0.1 255.255.255.255 ff02::1'],
    ['IPv6 unspecified, loopback', ':: ::1'],
    ['unique local, with metadata', 'fd00::1 fd00:ec2::254'],
    ['IPv6 link-local, site-local', 'fe80::1 fe80::1%eth0 fec0::1'],
    ['mapped', '::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe'],
    ['IPv4-compatible, IPv4-translated', '::127.0.0.1 ::ffff:0:127.0.0.1'],
    ['NAT64', '64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::5db8:d822'],
    ['Teredo, ORCHID, discard only', '2001:0:7f00:1::1 2001:20::1 100::1'],
    ['segment routing, not assigned', '5f00::1 4000::1'],
    ['no address', 'example.com  1.1.1.1:443 [2606:4700:4700::1111]'],
  ])('refuses %s', (_name, addresses) => {
    expect(addresses.split(' ').filter((ip) => isPublicAddress(ip))).toEqual([]);
  });
});

it.each([
  [true, '10.0.0.1 172.31.255.255 192.168.1.1 100.64.0.1'],
  [true, 'fd00::1 fd12:3456:789a::1 ::ffff:10.0.0.1 64:ff9b::10.0.0.1'],
  [false, '127.0.0.1 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 0.0.0.0 ::'],
  [false, '169.254.169.254 169.254.0.1 ::ffff:169.254.169.254 fe80::1 fe80::1%eth0'],
  // Metadata services.
  [false, 'fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 100.100.100.200 ::ffff:100.100.100.200'],
  [false, '168.63.129.16 192.0.0.192 224.0.0.1 255.255.255.255 1.1.1.1 example.com '],
])('isPrivateAddress is %s of %s', (expected, addresses) => {
  expect(addresses.split(' ').filter((ip) => isPrivateAddress(ip) !== expected)).toEqual([]);
});

describe('shownAddress', () => {
  it.each([
    ['https://user:pass@mcp.example.com:8443/mcp/?key=secret#part', 'https://mcp.example.com:8443/mcp/'],
    ['https://mcp.example.com/s/4f7c1e0a9b8d4f7c/mcp', 'https://mcp.example.com/s/…/mcp'],
    [
      'https://mcp.example.com/organizations/projects-of-the-team',
      'https://mcp.example.com/organizations/projects-of-the-team',
    ],
    ['http://[::1]:3000', 'http://[::1]:3000/'],
    ['nowhere', 'no valid address'],
  ])('of %s is %s', (address, shown) => {
    expect(shownAddress(address)).toBe(shown);
  });
});

describe('parseDestination', () => {
  it('reads hosts, ports and ranges', () => {
    expect(parseDestination('10.20.0.0/16')).toEqual({ kind: 'range', range: '10.20.0.0/16' });
    expect(parseDestination('localhost:11434')).toEqual({ kind: 'host', host: 'localhost', port: 11_434 });
    expect(parseDestination('git.example.com')).toEqual({
      kind: 'host',
      host: 'git.example.com',
      port: null,
    });
  });

  it.each(['', 'localhost', '127.0.0.1', '10.0.0.0/33', 'a b', 'host:0', 'host:65536', 'http://host', '-x'])(
    'refuses %j',
    (text) => expect(parseDestination(text)).toBeNull(),
  );
});

describe('destinationsOf', () => {
  it.each([
    ['http://10.0.0.5', ['10.0.0.5:80']],
    ['https://git.example.com/x', ['git.example.com:443']],
    ['proxy.corp:3128', ['proxy.corp:3128']],
    ['http://user:secret@127.0.0.1:3128', ['127.0.0.1:3128']],
    ['http://[::1]:3000/api', []],
    ['https://[fd00::5]', []],
    ['http://:', []],
  ])('%s: %j', (address, entries) => {
    expect(destinationsOf(address)).toEqual(entries);
  });
});
