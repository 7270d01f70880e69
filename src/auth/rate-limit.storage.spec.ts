import { describe, expect, it } from '@jest/globals';
import { RateLimitStorage } from './rate-limit.storage.js';

const MINUTE = 60_000;

describe('RateLimitStorage', () => {
  let now = 0;
  const counted = async (storage: RateLimitStorage, key = 'key', limit = 3) =>
    storage.increment(key, MINUTE, limit, MINUTE);
  const opened = (): RateLimitStorage => {
    now = 1_000_000;
    return new RateLimitStorage(() => now);
  };

  it('blocks a key with the request that exceeds the limit, for a minute from then', async () => {
    const storage = opened();
    for (const hits of [1, 2, 3]) {
      expect(await counted(storage)).toMatchObject({ totalHits: hits, isBlocked: false });
    }
    now += 30_000;
    expect(await counted(storage)).toEqual({
      totalHits: 4,
      isBlocked: true,
      timeToExpire: 60,
      timeToBlockExpire: 60,
    });
    now += 59_001;
    expect(await counted(storage)).toMatchObject({ totalHits: 4, isBlocked: true, timeToBlockExpire: 1 });
    now += 999;
    expect(await counted(storage)).toMatchObject({ totalHits: 1, isBlocked: false, timeToExpire: 60 });
  });

  it('begins a new window a minute after the first request', async () => {
    const storage = opened();
    await counted(storage);
    now += 59_999;
    expect(await counted(storage)).toMatchObject({ totalHits: 2, timeToExpire: 1 });
    now += 1;
    expect(await counted(storage)).toMatchObject({ totalHits: 1 });
  });

  it('counts each key apart', async () => {
    const storage = opened();
    await counted(storage, 'a', 1);
    await counted(storage, 'a', 1);

    expect(await counted(storage, 'b', 1)).toMatchObject({ totalHits: 1, isBlocked: false });
  });
});
