import { describe, expect, it } from '@jest/globals';
import { isWithinNetwork } from './dialer.js';

describe('isWithinNetwork', () => {
  it.each<[string, string, number, boolean]>([
    ['10.0.0.0/8', '10.1.2.3', 443, true],
    ['10.0.0.0/8', '11.1.2.3', 443, false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', 443, true],
    ['fd00::/8', 'fd12::1', 443, true],
    ['fd00::/8', '10.1.2.3', 443, false],
    ['10.1.2.3', '10.1.2.3', 1, true],
    ['10.1.2.3:5432', '10.1.2.3', 5432, true],
    ['10.1.2.3:5432', '10.1.2.3', 5433, false],
    ['[fd00::1]:443', 'fd00::1', 443, true],
    ['[fd00::1]:443', 'fd00::1', 444, false],
    ['fd00:0::1', 'fd00::1', 444, true],
    ['host.example', '10.1.2.3', 443, true],
    ['host.example:443', '10.1.2.3', 443, true],
    ['host.example:80', '10.1.2.3', 443, false],
    ['other.example', '10.1.2.3', 443, false],
    ['', '10.1.2.3', 443, false],
  ])('%s has %s:%d: %s', (entry, address, port, isWithin) => {
    expect(isWithinNetwork(entry, { address, host: 'host.example', port })).toBe(isWithin);
  });
});
