import { describe, expect, it } from '@jest/globals';
import { programAddress } from './program-address.js';

describe('programAddress', () => {
  it.each([
    [null, 'http://127.0.0.1:4000'],
    ['10.0.0.5', 'http://10.0.0.5:4000'],
    ['machine.example', 'http://machine.example:4000'],
    ['fd00::5', 'http://[fd00::5]:4000'],
  ])('%s: %s', (host, address) => {
    expect(programAddress(host, 4000)).toBe(address);
  });
});
