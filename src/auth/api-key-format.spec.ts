import { describe, expect, it } from '@jest/globals';
import { generateApiKey, parseApiKey } from './api-key-format.js';

describe('generateApiKey', () => {
  it('makes keys of the documented form, all different, each found by its own id', () => {
    const keys = Array.from({ length: 200 }, generateApiKey);

    expect(new Set(keys).size).toBe(200);
    for (const key of keys) {
      expect(key).toMatch(/^slw_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/);
      expect(parseApiKey(key)?.id).toBe(key.slice(4, 12));
    }
  });
});

describe('parseApiKey', () => {
  it('hashes the secret alone: the id does not matter to it', () => {
    const secret = 'A'.repeat(43);
    const [a, b] = [parseApiKey(`slw_AAAAAAAA_${secret}`), parseApiKey(`slw_BBBBBBBB_${secret}`)];

    expect(a?.secretHash).toEqual(b?.secretHash);
    expect(a?.secretHash).toHaveLength(32);
  });

  it('takes a key that an operator chose, and derives an id for it', () => {
    const parsed = parseApiKey('an-operators-own-key!');

    expect(parsed?.id).toMatch(/^[0-9A-Za-z]{8}$/);
    expect(parseApiKey('an-operators-own-key!')).toEqual(parsed);
    expect(parseApiKey('an-operators-own-key?')?.id).not.toBe(parsed?.id);
  });

  it.each([
    '',
    'short',
    'with spaces in between',
    'tab\tin-the-middle-of-it',
    'x'.repeat(513),
    'schlüssel-schlüssel',
  ])('refuses %j', (text) => {
    expect(parseApiKey(text)).toBeNull();
  });
});
