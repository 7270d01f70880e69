import { beforeEach, describe, expect, it } from '@jest/globals';
import { Clock } from '@slipway/common/clock.js';
import {
  GitProviderError,
  type ProviderErrorCode,
  type ProviderWork,
  type WorkPolicy,
} from '@slipway/git-providers/git-provider.js';
import { type Answer, type Cached, ProviderCache, settled } from '../git-providers/provider-cache.js';
import { workFreshFor } from './work.reader.js';

const MINUTE = 60_000;
const USUAL: WorkPolicy = { freshMs: MINUTE, freshWhileComputingMs: 15_000, maxChangeRequests: 50 };
const LIMITED: WorkPolicy = {
  freshMs: 2 * MINUTE,
  freshWhileComputingMs: 2 * MINUTE,
  maxChangeRequests: 20,
};

class ManualClock extends Clock {
  time = 1_000_000;

  now(): number {
    return this.time;
  }
}

function work(label: string): ProviderWork {
  return {
    changeRequests: [],
    issues: [],
    recentRepositories: [{ name: label, activeAt: null, usable: true }],
    probedRepositories: [],
    truncated: false,
    gaps: [],
  };
}

function label(read: Cached<ProviderWork>): string | undefined {
  return read.value.recentRepositories[0]?.name;
}

describe('ProviderCache of work', () => {
  let clock: ManualClock;
  let cache: ProviderCache<ProviderWork>;
  let calls: number;

  beforeEach(() => {
    clock = new ManualClock();
    cache = new ProviderCache(clock, { maxEntries: 10, maxItems: 10, countItems: () => 1 });
    calls = 0;
  });

  const respond = (name: string) => () => {
    calls += 1;
    return Promise.resolve(work(name));
  };
  const fail =
    (code: ProviderErrorCode, retryAfterSeconds: number | null = null) =>
    () => {
      calls += 1;
      return Promise.reject(new GitProviderError(code, { retryAfterSeconds }));
    };
  const answer = async (
    refresh: () => Promise<ProviderWork>,
    policy: WorkPolicy,
    key: string,
  ): Promise<Answer<ProviderWork>> => {
    const value = await refresh();
    return { key, value, freshMs: workFreshFor(policy, value) };
  };
  const read = async (
    refresh: () => Promise<ProviderWork>,
    policy = USUAL,
    { key = 'key', from = 'key', waitMs = 1000 } = {},
  ): Promise<Cached<ProviderWork>> => {
    const known = cache.find(key);
    let running = cache.running(key);
    if (known.isDue && !running) {
      running = cache.refresh(key, answer(refresh, policy, from));
    }
    return settled(known, running, waitMs);
  };
  const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it.each([USUAL, LIMITED])('serves work as long as the policy says: %j', async (policy) => {
    await read(respond('first'), policy);
    clock.time += policy.freshMs - 1;

    expect(await read(respond('second'), policy)).toMatchObject({ stale: false });
    expect(calls).toBe(1);
  });

  it('asks again after fifteen seconds while a conflict signal is unknown', async () => {
    const unknown = work('first');
    unknown.changeRequests.push({
      repository: { name: 'a/b', activeAt: 1, usable: true },
      number: 1,
      title: '',
      updatedAt: 1,
      draft: false,
      conflicts: 'unknown',
      failingChecks: 'no',
      unresolvedComments: 'no',
    });
    await read(() => Promise.resolve(unknown));
    clock.time += 15_000;

    expect(await read(respond('second'))).toMatchObject({ stale: true });
    expect(calls).toBe(1);
  });

  it.each<[ProviderErrorCode, WorkPolicy, number]>([
    ['unavailable', USUAL, 30_000],
    ['timeout', LIMITED, 30_000],
    ['rate_limited', USUAL, 30_000],
    ['unauthorized', USUAL, 30_000],
    ['sso_required', USUAL, MINUTE],
    ['insufficient_scope', LIMITED, 2 * MINUTE],
  ])('keeps data that lacks a part (%s, %j) for %d ms', async (gap, policy, fresh) => {
    await read(() => Promise.resolve({ ...work('first'), gaps: [gap] }), policy);
    clock.time += fresh - 1;
    expect(await read(respond('second'), policy)).toMatchObject({ stale: false });
    clock.time += 1;

    expect(await read(respond('second'), policy)).toMatchObject({ stale: true });
    expect(calls).toBe(1);
  });

  it('serves older data at once and refreshes it in the background', async () => {
    await read(respond('first'));
    clock.time += 5 * MINUTE;

    const stale = await read(respond('second'));
    expect([label(stale), stale.stale, stale.age]).toEqual(['first', true, 300]);
    await idle();

    const fresh = await read(respond('third'));
    expect([label(fresh), fresh.stale]).toEqual(['second', false]);
    expect(calls).toBe(2);
  });

  describe('when the clock is set back', () => {
    it('does not take what seems to come from the future for fresh', async () => {
      await read(respond('first'));
      clock.time -= 24 * 60 * MINUTE;

      expect(await read(respond('second'))).toMatchObject({ stale: true, age: 60 });
      await idle();
      expect(label(await read(respond('third')))).toBe('second');
    });

    it('drops the data in time when no refresh succeeds', async () => {
      await read(respond('first'));
      clock.time -= 24 * 60 * MINUTE;
      expect(await read(fail('unavailable'))).toMatchObject({ stale: true });
      clock.time += 60 * MINUTE;

      await expect(read(fail('unavailable'))).rejects.toMatchObject({ code: 'unavailable' });
    });

    it('does not remember a refusal until then', async () => {
      await expect(read(fail('unauthorized'))).rejects.toMatchObject({ code: 'unauthorized' });
      clock.time -= 24 * 60 * MINUTE;

      expect(label(await read(respond('now')))).toBe('now');
    });
  });

  it('waits for a refresh when the data is older than ten minutes', async () => {
    await read(respond('first'));
    clock.time += 10 * MINUTE;

    expect(label(await read(respond('second')))).toBe('second');
  });

  it.each<ProviderErrorCode>(['unavailable', 'timeout', 'rate_limited'])(
    'falls back on data of up to an hour when a refresh ends in %s',
    async (code) => {
      await read(respond('first'));
      clock.time += 59 * MINUTE;

      const stale = await read(fail(code));
      expect([label(stale), stale.stale, stale.age]).toEqual(['first', true, 59 * 60]);

      clock.time += MINUTE;
      await expect(read(fail(code))).rejects.toMatchObject({ code });
    },
  );

  it.each<ProviderErrorCode>(['unauthorized', 'insufficient_scope', 'reauth_required'])(
    'does not serve old data to a token that is refused (%s), and forgets it',
    async (code) => {
      await read(respond('first'));
      clock.time += 11 * MINUTE;

      await expect(read(fail(code))).rejects.toMatchObject({ code });
      clock.time += 31_000;
      await expect(read(fail('unavailable'))).rejects.toMatchObject({ code: 'unavailable' });
    },
  );

  it('remembers a refusal for thirty seconds and no longer', async () => {
    await expect(read(fail('unauthorized'))).rejects.toMatchObject({ code: 'unauthorized' });
    clock.time += 29_999;
    await expect(read(respond('now'))).rejects.toMatchObject({ code: 'unauthorized' });
    expect(calls).toBe(1);

    clock.time += 1;
    expect(label(await read(respond('now')))).toBe('now');
  });

  it('counts down the wait of a remembered rate limit', async () => {
    await expect(read(fail('rate_limited', 41))).rejects.toMatchObject({ retryAfterSeconds: 41 });
    clock.time += 20_000;

    await expect(read(respond('now'))).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 21 });
    expect(calls).toBe(1);
  });

  it.each<ProviderErrorCode>(['unavailable', 'timeout'])('asks again at once after %s', async (code) => {
    await expect(read(fail(code))).rejects.toMatchObject({ code });

    expect(label(await read(respond('now')))).toBe('now');
  });

  it('lets fifty concurrent readers share one refresh', async () => {
    const reads = await Promise.all(Array.from({ length: 50 }, () => read(respond('shared'))));

    expect(calls).toBe(1);
    expect(new Set(reads.map(label))).toEqual(new Set(['shared']));
  });

  it('gives up waiting in time, and keeps what the refresh brings later', async () => {
    let finish: (value: ProviderWork) => void = () => undefined;
    const slow = new Promise<ProviderWork>((resolve) => {
      finish = resolve;
    });

    await expect(read(() => slow, USUAL, { waitMs: 1 })).rejects.toMatchObject({ code: 'timeout' });
    finish(work('late'));
    await idle();

    expect(label(await read(respond('again')))).toBe('late');
    expect(calls).toBe(0);
  });

  it('keeps the data of a credential that rotated during the refresh under its successor', async () => {
    await read(() => Promise.resolve(work('rotated')), USUAL, { key: 'old', from: 'new' });

    expect(label(await read(respond('again'), USUAL, { key: 'new' }))).toBe('rotated');
    expect(calls).toBe(0);
  });
});
