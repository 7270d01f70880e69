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

describe('BitbucketMemory', () => {
  it('keeps identities for an hour and signals for ten minutes', () => {
    const { cache, pass } = start();
    cache.rememberIdentity('owner', identity);
    cache.rememberSignal('owner', 'conflicts', 'yes');
    pass(10 * MINUTE_MS - 1);
    expect(cache.signal('owner', 'conflicts')).toBe('yes');
    pass(2);
    expect(cache.signal('owner', 'conflicts')).toBeUndefined();
    expect(cache.identity('owner')).toEqual(identity);
    pass(50 * MINUTE_MS);
    expect(cache.identity('owner')).toBeUndefined();
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

  it('keeps owners and subjects apart, and forgets on demand', () => {
    const { cache } = start();
    cache.rememberIdentity('one', identity);
    cache.rememberSignal('one', 'conflicts', 'yes');
    expect(cache.identity('two')).toBeUndefined();
    expect(cache.signal('two', 'conflicts')).toBeUndefined();
    expect(cache.signal('one', 'comments')).toBeUndefined();
    cache.forgetIdentity('one');
    expect(cache.identity('one')).toBeUndefined();
  });
});
