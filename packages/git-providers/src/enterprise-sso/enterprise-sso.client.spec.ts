import { describe, expect, it } from '@jest/globals';
import { EnterpriseSsoTokenCache } from './enterprise-sso.client.js';
import type { GitServerToken } from './enterprise-sso.mapper.js';

function token(value: string, keepMs = 1_000): GitServerToken {
  return { token: value, keepMs };
}

/** A cache, and which tokens had to be looked up. */
function create(options: { maxEntries?: number } = {}) {
  const cache = new EnterpriseSsoTokenCache(options);
  const lookups: string[] = [];
  const get = (stored: string, found = token(`server-${stored}`), scope = 'realm') =>
    cache.get(scope, stored, () => {
      lookups.push(`${scope} ${stored}`);
      return Promise.resolve(found);
    });
  return { cache, get, lookups };
}

describe('EnterpriseSsoTokenCache', () => {
  it('keeps tokens apart by realm and stored token', async () => {
    const { get, lookups } = create();
    await get('a');
    await get('b');
    await get('a', token('elsewhere'), 'other');
    expect([await get('a'), await get('b')]).toEqual([token('server-a'), token('server-b')]);
    expect(lookups).toEqual(['realm a', 'realm b', 'other a']);
  });

  it('keeps no more than it may', async () => {
    const { get, lookups } = create({ maxEntries: 2 });
    for (const stored of ['a', 'b', 'c', 'c', 'b', 'a']) {
      await get(stored);
    }
    expect(lookups).toEqual(['realm a', 'realm b', 'realm c', 'realm a']);
  });

  it('forgets a refused token only while it is the current one', async () => {
    const { cache, get, lookups } = create();
    const refused = await get('a');
    cache.drop('realm', 'a', refused);
    const renewed = await get('a', token('renewed'));
    cache.drop('realm', 'a', refused);
    expect(await get('a')).toBe(renewed);
    expect(lookups).toHaveLength(2);
  });

  it('knows the newest successor from every token it replaced', () => {
    const { cache } = create();
    cache.noteRotation('realm', 'first', 'first', 'second');
    cache.noteRotation('realm', 'first', 'second', 'third');
    const known = ['first', 'second', 'third'].map((stored) => cache.successorOf('realm', stored)?.token);
    expect(known).toEqual(['third', 'third', undefined]);
    expect(cache.successorOf('other', 'first')).toBeUndefined();
  });

  it('keeps no failure', async () => {
    const { cache, get } = create();
    await expect(cache.get('realm', 'a', () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect(await get('a')).toEqual(token('server-a'));
  });
});
