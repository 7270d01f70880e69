import { describe, expect, it } from '@jest/globals';
import { type Release, SharedLimit } from './shared-limit.js';

function taken(limit: SharedLimit, holder: string, share?: number): Release {
  const release = limit.take(holder, share);
  if (typeof release === 'string') {
    throw new TypeError(`no place for ${holder}: ${release}`);
  }
  return release;
}

describe('SharedLimit', () => {
  it('refuses a holder whose share is used up, and no other', () => {
    const limit = new SharedLimit(4, 2);
    taken(limit, 'bob');
    taken(limit, 'bob');
    expect(limit.take('bob')).toBe('share');
    taken(limit, 'alice');
    expect(limit.inUse).toBe(3);
  });

  it('refuses everybody when all places are in use', () => {
    const limit = new SharedLimit(2, 2);
    taken(limit, 'bob');
    taken(limit, 'alice');
    expect(limit.take('carol')).toBe('whole');
  });

  it('says that the share is used up when both are', () => {
    const limit = new SharedLimit(1, 1);
    taken(limit, 'bob');
    expect(limit.take('bob')).toBe('share');
  });

  it('gives a place back once', () => {
    const limit = new SharedLimit(2, 1);
    const release = taken(limit, 'bob');
    taken(limit, 'alice');
    release();
    release();
    expect([limit.inUse, limit.heldBy('bob'), limit.heldBy('alice')]).toEqual([1, 0, 1]);
    taken(limit, 'bob');
  });

  it('lets a holder have a share of another size', () => {
    const limit = new SharedLimit(3, 2);
    taken(limit, 'sandbox', 1);
    expect(limit.take('sandbox', 1)).toBe('share');
    taken(limit, 'sandbox');
  });
});
