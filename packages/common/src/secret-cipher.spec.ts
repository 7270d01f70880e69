import { describe, expect, it } from '@jest/globals';
import { SecretCipher, type CipherKey, SecretDecryptionError } from './secret-cipher.js';

const OLD: CipherKey = { id: 'old', bytes: Buffer.alloc(32, 1) };
const NEW: CipherKey = { id: 'new', bytes: Buffer.alloc(32, 2) };

describe('SecretCipher', () => {
  it.each(['', 'secret', '漢字 🎉', 'x'.repeat(100_000)])('gives back what it encrypted', (text) => {
    const cipher = new SecretCipher([OLD]);

    expect(cipher.decrypt(cipher.encrypt(text, 'place'), 'place')).toBe(text);
  });

  it('names the key and hides the text, differently every time', () => {
    const cipher = new SecretCipher([OLD]);
    const records = [cipher.encrypt('secret', 'place'), cipher.encrypt('secret', 'place')];

    expect(new Set(records).size).toBe(2);
    for (const record of records) {
      expect(record).toMatch(/^old\.[A-Za-z0-9_-]+$/);
      expect(Buffer.from(record.slice(4), 'base64url').toString('latin1')).not.toContain('secret');
    }
  });

  it('uses no initialization vector twice', () => {
    const cipher = new SecretCipher([OLD]);
    const vectors = Array.from({ length: 500 }, () =>
      Buffer.from(cipher.encrypt('', 'place').slice(4), 'base64url').toString('hex', 0, 12),
    );

    expect(new Set(vectors).size).toBe(500);
  });

  it('derives secrets that differ by purpose and by its first key', () => {
    const cipher = new SecretCipher([OLD]);

    expect(cipher.derive('one')).toMatch(/^[\w-]{43}$/);
    expect(new SecretCipher([OLD, NEW]).derive('one')).toBe(cipher.derive('one'));
    const others = [
      cipher.derive('other'),
      new SecretCipher([NEW]).derive('one'),
      OLD.bytes.toString('base64url'),
    ];
    expect(others).not.toContain(cipher.derive('one'));
  });

  it.each([
    ['under its key', 'one', [OLD], true],
    ['after a rotation', 'one', [NEW, OLD], true],
    ['once its key is gone', 'one', [NEW], false],
    ['of another purpose', 'other', [OLD], false],
  ])('knows a derived secret %s: %s', (_, purpose, keys, expected) => {
    const secret = new SecretCipher([OLD]).derive('one');
    expect(new SecretCipher(keys).hasDerived(purpose, secret)).toBe(expected);
    expect(new SecretCipher(keys).hasDerived(purpose, secret.slice(1))).toBe(false);
  });

  it('knows a derived secret by no other text that decodes to the same bytes', () => {
    const cipher = new SecretCipher([OLD]);
    const secret = cipher.derive('one');
    const bytes = Buffer.from(secret, 'base64url');
    const same = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
      .map((last) => secret.slice(0, -1) + last)
      .filter((text) => Buffer.from(text, 'base64url').equals(bytes));

    expect(same).toHaveLength(4);
    expect(same.filter((text) => cipher.hasDerived('one', text))).toEqual([secret]);
  });

  it('decrypts with every key and encrypts with the first', () => {
    const record = new SecretCipher([OLD]).encrypt('secret', 'place');
    const rotated = new SecretCipher([NEW, OLD]);

    expect(rotated.decrypt(record, 'place')).toBe('secret');
    expect([rotated.isOutdated(record), rotated.isOutdated(rotated.encrypt('secret', 'place'))]).toEqual([
      true,
      false,
    ]);
  });

  it('refuses a record that was moved, altered, cut or made with an unknown key', () => {
    const cipher = new SecretCipher([NEW, OLD]);
    const record = cipher.encrypt('secret', 'place');
    const bytes = Buffer.from(record.slice(4), 'base64url');
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;

    expect(() => cipher.decrypt(record, 'another place')).toThrow(SecretDecryptionError);
    expect(() => cipher.decrypt(`new.${bytes.toString('base64url')}`, 'place')).toThrow(
      SecretDecryptionError,
    );
    expect(() => cipher.decrypt(record.slice(0, 20), 'place')).toThrow(SecretDecryptionError);
    expect(() => cipher.decrypt(`other${record.slice(3)}`, 'place')).toThrow(
      /no encryption key with id "other"/,
    );
    expect(() => cipher.decrypt('', 'place')).toThrow(SecretDecryptionError);
  });
});
