import { describe, expect, it } from '@jest/globals';
import { BoundedCache } from './bounded-cache.js';

describe('bounded cache', () => {
  it('forgets the entry that was idle longest', () => {
    const cache = new BoundedCache<string, number>(2);
    cache.set('a', 1);
    cache.set('b', 2);
    cache.get('a');
    cache.set('c', 3);
    expect([...cache.keys()].toSorted()).toEqual(['a', 'c']);
  });

  it('allocates nothing in advance', () => {
    const cache = new BoundedCache<string, number>(1_000_000, { ttl: 10 });
    expect(cache.max).toBe(0);
  });
});
