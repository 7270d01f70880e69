import { describe, expect, it } from '@jest/globals';
import { parseHexId, toHexId } from './identifiers.js';

const UUID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';

describe('parseHexId', () => {
  it.each([
    ['with dashes', UUID, UUID],
    ['without dashes', '0b6f0a526a0f4b2e9d2a1f6f0c1d2e3f', UUID],
    ['in upper case', UUID.toUpperCase(), UUID],
    ['too short', UUID.slice(1), null],
    ['too long', `${UUID}0`, null],
    ['other letters', UUID.replace('0', 'g'), null],
    ['a line break at the end', `${UUID}\n`, null],
    ['nothing', '', null],
  ])('reads an id %s', (_name, text, expected) => {
    expect(parseHexId(text)).toBe(expected);
  });
});

describe('toHexId', () => {
  it('drops the dashes, and parseHexId brings them back', () => {
    expect(toHexId(UUID)).toBe('0b6f0a526a0f4b2e9d2a1f6f0c1d2e3f');
    expect(parseHexId(toHexId(UUID))).toBe(UUID);
  });
});
