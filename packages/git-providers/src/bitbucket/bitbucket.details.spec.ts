import { describe, expect, it } from '@jest/globals';
import { BitbucketCache } from './bitbucket.details.js';

const MINUTE_MS = 60 * 1000;
const identity = { uuid: '{u}', workspaces: ['team'], truncated: false };

function start(): { cache: BitbucketCache; pass: (ms: number) => void } {
  let now = 1_795_000_000_000;
  const cache = new BitbucketCache(() => now);
  return {
    cache,
    pass: (ms) => {
      now += ms;
    },
  };
}

describe('BitbucketCache', () => {
  it('keeps identities for an hour and signals for ten minutes', () => {
    const { cache, pass } = start();
    cache.identities.set('owner', identity);
    cache.signals.set('owner conflicts', 'yes');
    pass(10 * MINUTE_MS - 1);
    expect(cache.signals.get('owner conflicts')).toBe('yes');
    pass(2);
    expect(cache.signals.get('owner conflicts')).toBeUndefined();
    expect(cache.identities.get('owner')).toEqual(identity);
    pass(50 * MINUTE_MS);
    expect(cache.identities.get('owner')).toBeUndefined();
  });

  it('names owners by token and address without containing them', () => {
    const { cache } = start();
    const owners = [
      cache.ownerOf('https://a.example.com', 'token'),
      cache.ownerOf('https://a.example.com', 'other'),
      cache.ownerOf('https://b.example.com', 'token'),
      start().cache.ownerOf('https://a.example.com', 'token'),
    ];
    expect(new Set(owners).size).toBe(4);
    expect(cache.ownerOf('https://a.example.com', 'token')).toBe(owners[0]);
    expect(owners.join()).not.toContain('token');
  });
});
