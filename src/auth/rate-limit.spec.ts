import { describe, expect, it } from '@jest/globals';
import { RateLimit } from './rate-limit.js';

describe('RateLimit', () => {
  let now = 0;
  const opened = (limit: number): RateLimit => {
    now = 1_000_000;
    return new RateLimit(limit, () => now);
  };

  it('is exceeded by the request after the last one, until a minute after the first', () => {
    const limit = opened(2);
    expect(limit.count('bob')).toEqual({ isExceeded: false, remaining: 1, resetSeconds: 60 });
    now += 30_000;
    expect(limit.count('bob')).toEqual({ isExceeded: false, remaining: 0, resetSeconds: 30 });
    now += 29_001;
    expect(limit.count('bob')).toEqual({ isExceeded: true, remaining: 0, resetSeconds: 1 });
    now += 999;
    expect(limit.count('bob')).toEqual({ isExceeded: false, remaining: 1, resetSeconds: 60 });
  });

  it('counts each caller apart', () => {
    const limit = opened(1);
    limit.count('bob');
    expect(limit.count('bob').isExceeded).toBe(true);
    expect(limit.count('alice').isExceeded).toBe(false);
  });

  it('is never exceeded when it is 0', () => {
    const limit = opened(0);
    limit.count('bob');
    expect(limit.count('bob').isExceeded).toBe(false);
  });
});
