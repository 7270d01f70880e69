import { expect, it } from '@jest/globals';
import { anySubnet } from './sandbox-links.js';

it.each([
  ['10.0.0.0/8', 8, 24],
  ['198.18.0.0/16', 16, 12],
  ['198.18.7.0/24', 24, 4],
])('is any of %s', (range, bits, free) => {
  const numberOf = (address: string): number =>
    address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const [begin = ''] = range.split('/');
  const subnets = Array.from({ length: 200 }, () => anySubnet(range));
  for (const subnet of subnets) {
    const [address = '', prefix] = subnet.split('/');
    expect(prefix).toBe('28');
    expect((numberOf(address) - numberOf(begin)) % 16).toBe(0);
    expect(Math.floor((numberOf(address) - numberOf(begin)) / 2 ** (32 - bits))).toBe(0);
  }
  expect(new Set(subnets).size).toBeGreaterThan(free - 1);
});
