import { describe, expect, it } from '@jest/globals';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { beginSignIn, ownPath, pendingSignIn, signInCookie } from './pending-sign-in.js';

const cipher = new SecretCipher([{ id: 'k1', bytes: Buffer.alloc(32, 1) }]);
const other = new SecretCipher([{ id: 'k1', bytes: Buffer.alloc(32, 2) }]);

describe('the path after a sign-in', () => {
  const here = 'https://tools.example.com/slipway';

  it.each([
    ['/slipway/console/work?x=1#y', '/slipway/console/work?x=1#y'],
    [undefined, '/slipway/console/'],
    ['', '/slipway/console/'],
    ['https://evil.example/', '/slipway/console/'],
    ['//evil.example/', '/slipway/console/'],
    ['/\\evil.example/', '/slipway/console/'],
    ['/\t/evil.example/', '/slipway/console/'],
    ['/.//evil.example', '/slipway/console/'],
    ['/another-application', '/slipway/console/'],
    ['/slipway/../another-application', '/slipway/console/'],
    ['/slipwayer/console/', '/slipway/console/'],
    [`/slipway/${'€'.repeat(700)}`, '/slipway/console/'],
    ['javascript:alert(1)', '/slipway/console/'],
    ['console', '/slipway/console/'],
  ])('of %j is %s', (asked, expected) => {
    expect(ownPath(asked, here)).toBe(expected);
  });
});

describe('a pending sign-in', () => {
  const pending = beginSignIn('/console/', null, 1_000);
  const headersOf = (cookie: string): { cookie: string } => ({ cookie: cookie.split(';')[0] ?? '' });

  it('is read from the cookie that it was kept in, which no script gets', () => {
    const cookie = signInCookie(cipher, pending, true);

    expect(cookie).toMatch(
      /^__Host-slipway_login=[^;]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(cookie).not.toContain(pending.verifier);
    expect(pendingSignIn(cipher, headersOf(cookie), true, 2_000)).toEqual(pending);
  });

  it.each<[string, { cookie?: string }, boolean, number]>([
    ['no cookie', {}, false, 2_000],
    ['one of ten minutes ago', headersOf(signInCookie(cipher, pending, false)), false, 601_000],
    ['one that a plain page has set', headersOf(signInCookie(cipher, pending, false)), true, 2_000],
    ['one of another installation', headersOf(signInCookie(other, pending, false)), false, 2_000],
    ['text', { cookie: 'slipway_login=text' }, false, 2_000],
    [
      'two of them',
      { cookie: `${headersOf(signInCookie(cipher, pending, false)).cookie}; slipway_login=x` },
      false,
      2_000,
    ],
  ])('is none with %s', (_what, headers, isHttps, now) => {
    expect(pendingSignIn(cipher, headers, isHttps, now)).toBeNull();
  });
});
