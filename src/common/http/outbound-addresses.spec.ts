import { describe, expect, it } from '@jest/globals';
import { OutboundAddresses } from './outbound-addresses.js';

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
