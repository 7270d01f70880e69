import { describe, expect, it } from '@jest/globals';
import { networkRules, resolverConfiguration, routingCommands } from './network-rules.js';

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
  it('blocks everything that is not public, and the addresses of the machine', async () => {
    const { blocked, loopbackPorts } = await rules([], ['127.0.0.1', '203.0.113.9', '10.1.1.1', 'fe80::1']);
    expect(blocked).toEqual(
      expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16', '203.0.113.9/32']),
    );
    expect(blocked.some((range) => range.includes(':') || range.startsWith('127.'))).toBe(false);
    expect(loopbackPorts).toEqual([]);
  });

  it('opens a range by blocking what surrounds it', async () => {
    const { blocked } = await rules(['172.16.0.0/14']);
    expect(blocked.filter((range) => range.startsWith('172.'))).toEqual(['172.20.0.0/14', '172.24.0.0/13']);
  });

  it.each([
    ['a whole block', ['10.0.0.0/8'], []],
    ['more than a block', ['0.0.0.0/0'], []],
    ['a range whose address has bits behind its prefix', ['10.255.255.255/8'], []],
  ])('opens %s', async (_, allow, expected) => {
    expect((await rules(allow)).blocked.filter((range) => range.startsWith('10.'))).toEqual(expected);
  });

  it('opens the private addresses of a name, and one port of the loopback', async () => {
    const { blocked, loopbackPorts } = await rules([
      'git.corp.example.com:8443',
      'localhost:11434',
      'proxy.example.com:3128',
      '127.0.0.1:5',
      'unknown.example.com',
      'www.example.com:443',
    ]);
    expect(loopbackPorts).toEqual([5, 3128, 11434]);
    const around = blocked.filter((range) => range.startsWith('10.20.0.'));
    expect(around).toContain('10.20.0.6/32');
    expect(around).not.toContain('10.20.0.7/32');
    expect(around).toHaveLength(8);
  });
});

it('routingCommands block ranges first, and open ports before the gateway is closed', () => {
  expect(routingCommands({ blocked: ['10.0.0.0/8'], loopbackPorts: [11434] }).split('\n')).toEqual([
    'link set lo up',
    'route add prohibit 10.0.0.0/8',
    'rule add pref 100 to 10.0.2.2 ipproto tcp dport 11434 lookup main',
    'rule add pref 200 to 10.0.2.2 ipproto tcp prohibit',
    'rule add pref 200 to 10.0.2.2 ipproto udp prohibit',
    'rule add pref 200 to 10.0.2.2 ipproto icmp prohibit',
  ]);
});

it('resolverConfiguration keeps search domains and replaces name servers', () => {
  expect(resolverConfiguration('# made by hand\nsearch corp.example.com\nnameserver 127.0.0.53\n')).toBe(
    'search corp.example.com\nnameserver 10.0.2.3\n',
  );
});
