import { describe, expect, it } from '@jest/globals';
import { firstComplaint, networkRules, resolverConfiguration, policyCommands } from './sandbox-network.js';

const NAMES: Record<string, string[]> = {
  'git.corp.example.com': ['10.20.0.7', 'fd00::7'],
  'proxy.example.com': ['127.0.0.1'],
  'www.example.com': ['93.184.215.14'],
};

const resolve = async (hostname: string) => {
  const found = NAMES[hostname];
  if (found === undefined) {
    throw new Error('ENOTFOUND');
  }
  return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
};

const rules = async (allow: string[], own: string[] = []) => await networkRules(allow, own, resolve);

describe('networkRules', () => {
  it('closes everything that is not public, and the addresses of the machine', async () => {
    const { closed, opened, loopbackPorts } = await rules([], ['127.0.0.1', '203.0.113.9', 'fe80::1']);
    expect(closed).toEqual(
      expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16', '203.0.113.9']),
    );
    expect(closed.some((range) => range.includes(':') || range.startsWith('127.'))).toBe(false);
    expect({ opened, loopbackPorts }).toEqual({ opened: [], loopbackPorts: [] });
  });

  it.each([
    ['a range', '172.16.0.0/14', [{ range: '172.16.0.0/14', port: null }]],
    ['a range whose address has bits behind its prefix', '10.1.2.3/8', [{ range: '10.0.0.0/8', port: null }]],
    ['an address', '10.1.2.3', [{ range: '10.1.2.3', port: null }]],
    ['a port of a name', 'git.corp.example.com:8443', [{ range: '10.20.0.7', port: 8443 }]],
    ['a name without an address', 'unknown.example.com', []],
  ])('opens %s', async (_, entry, opened) => {
    expect((await rules([entry])).opened).toEqual(opened);
  });

  it('opens single ports of the loopback', async () => {
    const allow = ['localhost:11434', 'proxy.example.com:3128', '127.0.0.1:5', '127.0.0.1:11434'];
    expect(await rules(allow)).toMatchObject({ opened: [], loopbackPorts: [11_434, 3128, 5] });
  });
});

it('policyCommands close ranges, but for what they open', () => {
  const given = {
    closed: ['10.0.0.0/8'],
    opened: [
      { range: '10.20.0.0/16', port: null },
      { range: '10.1.2.3', port: 8443 },
    ],
    loopbackPorts: [11_434],
  };
  expect(policyCommands(given).split('\n')).toEqual([
    'link set lo up',
    'xfrm policy add dst 10.0.2.3 proto tcp dport 53 dir out priority 100',
    'xfrm policy add dst 10.0.2.3 proto udp dport 53 dir out priority 100',
    'xfrm policy add dst 10.0.2.2 proto tcp dport 11434 dir out priority 100',
    'xfrm policy add dst 10.20.0.0/16 dir out priority 100',
    'xfrm policy add dst 10.1.2.3 proto tcp dport 8443 dir out priority 100',
    'xfrm policy add dst 10.0.0.0/8 dir out action block priority 200',
  ]);
});

it('policyCommands name each destination once, which is open where it is both', () => {
  const given = {
    closed: ['10.0.0.0/8', '192.168.0.0/16', '203.0.113.9', '203.0.113.9', '203.0.113.8'],
    opened: [
      { range: '10.0.0.0/8', port: null },
      { range: '203.0.113.9/32', port: null },
      { range: '203.0.113.9', port: null },
      { range: '203.0.113.8', port: 443 },
    ],
    loopbackPorts: [],
    isNameless: true,
  } as const;
  expect(policyCommands(given).split('\n')).toEqual([
    'link set lo up',
    'xfrm policy add dst 10.0.0.0/8 dir out priority 100',
    'xfrm policy add dst 203.0.113.9 dir out priority 100',
    'xfrm policy add dst 203.0.113.8 proto tcp dport 443 dir out priority 100',
    'xfrm policy add dst 192.168.0.0/16 dir out action block priority 200',
    'xfrm policy add dst 203.0.113.8 dir out action block priority 200',
  ]);
});

it('resolverConfiguration keeps search domains and replaces name servers', () => {
  expect(resolverConfiguration('# made by hand\nsearch corp.example.com\nnameserver 127.0.0.53\n')).toBe(
    'search corp.example.com\nnameserver 10.0.2.3\n',
  );
});

describe('firstComplaint', () => {
  it.each([
    [
      'WARNING: Support for seccomp is experimental\nopen("/dev/net/tun"): Permission denied\nchild failed(1)\n',
      'open("/dev/net/tun"): Permission denied',
    ],
    ['WARNING: Support for seccomp is experimental\n', 'slirp4netns says nothing'],
  ])('is one line that says why slirp4netns failed', (log, expected) => {
    expect(firstComplaint(log)).toBe(expected);
  });
});
