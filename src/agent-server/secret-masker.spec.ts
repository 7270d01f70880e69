import { describe, expect, it } from '@jest/globals';
import { SecretMasker } from './secret-masker.js';

const SECRET = 'pa/ss"w?rd\n€';

describe('SecretMasker', () => {
  const masker = new SecretMasker([SECRET, 'user', 'abc', 'sk-long', 'sk-longer', '  padded-value\n']);

  it.each([
    ['as it is', SECRET, '<secret-hidden>'],
    ['in base64', Buffer.from(SECRET).toString('base64'), '<secret-hidden>'],
    ['in base64url', Buffer.from(SECRET).toString('base64url'), '<secret-hidden>'],
    ['URL-encoded', `?key=${encodeURIComponent(SECRET)}&x`, '?key=<secret-hidden>&x'],
    ['inside JSON', JSON.stringify({ key: SECRET }), '{"key":"<secret-hidden>"}'],
    ['the longest first', 'sk-longer sk-long', '<secret-hidden> <secret-hidden>'],
    ['without the blanks around it', 'a padded-value b', 'a <secret-hidden> b'],
    ['not the short ones', 'abc', 'abc'],
    ['twice', 'user user', '<secret-hidden> <secret-hidden>'],
  ])('masks %s', (_case, text, expected) => {
    expect(masker.text(text)).toBe(expected);
  });

  it('masks texts at every depth, but not the members that carry the protocol', () => {
    const event = {
      source: 'user',
      content: [{ type: 'user', text: 'a user' }],
      deep: { on: true, n: 1, none: null },
    };
    expect(masker.value(event)).toEqual({
      source: 'user',
      content: [{ type: 'user', text: 'a <secret-hidden>' }],
      deep: { on: true, n: 1, none: null },
    });
  });

  it('leaves everything alone when there is no secret', () => {
    expect(new SecretMasker([]).text('anything')).toBe('anything');
  });
});
