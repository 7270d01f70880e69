import { beforeEach, describe, expect, it } from '@jest/globals';
import { Clock } from '../common/clock.js';
import {
  GitProviderError,
  type GitServerKind,
  type ProviderErrorCode,
  type ProviderWork,
} from '../git-providers/git-provider.js';
import { WorkCache, type CachedWork } from './work-cache.js';

const MINUTE = 60_000;

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

function label(read: CachedWork): string | undefined {
  return read.work.recentRepositories[0]?.name;
}

describe('WorkCache', () => {
  let clock: ManualClock;
  let cache: WorkCache;
  let calls: number;

  beforeEach(() => {
    clock = new ManualClock();
    cache = new WorkCache(clock);
    calls = 0;
  });

  const answer = (name: string) => () => {
    calls += 1;
    return Promise.resolve(work(name));
  };
  const fail =
    (code: ProviderErrorCode, retryAfterSeconds: number | null = null) =>
    () => {
      calls += 1;
      return Promise.reject(new GitProviderError(code, { retryAfterSeconds }));
    };
  const read = (refresh: () => Promise<ProviderWork>, kind: GitServerKind = 'github'): Promise<CachedWork> =>
    cache.read('key', kind, refresh, 1000);
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it.each<[GitServerKind, number]>([
    ['github', MINUTE],
    ['gitlab', MINUTE],
    ['bitbucket', 2 * MINUTE],
    ['bitbucket_dc', 2 * MINUTE],
  ])('serves %s for %d ms without asking again', async (kind, fresh) => {
    await read(answer('first'), kind);
    clock.time += fresh - 1;

    expect(await read(answer('second'), kind)).toMatchObject({ stale: false });
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

    expect(await read(answer('second'))).toMatchObject({ stale: true });
    expect(calls).toBe(1);
  });

  it.each<[ProviderErrorCode, GitServerKind, number]>([
    ['unavailable', 'github', 30_000],
    ['timeout', 'bitbucket', 30_000],
    ['rate_limited', 'gitlab', 30_000],
    ['unauthorized', 'gitlab', 30_000],
    ['sso_required', 'github', MINUTE],
    ['insufficient_scope', 'bitbucket', 2 * MINUTE],
  ])('keeps data that lacks a part (%s, %s) for %d ms', async (gap, kind, fresh) => {
    await read(() => Promise.resolve({ ...work('first'), gaps: [gap] }), kind);
    clock.time += fresh - 1;
    expect(await read(answer('second'), kind)).toMatchObject({ stale: false });
    clock.time += 1;

    expect(await read(answer('second'), kind)).toMatchObject({ stale: true });
    expect(calls).toBe(1);
  });

  it('serves older data at once and refreshes it in the background', async () => {
    await read(answer('first'));
    clock.time += 5 * MINUTE;

    const stale = await read(answer('second'));
    expect([label(stale), stale.stale, stale.age]).toEqual(['first', true, 300]);
    await settled();

    const fresh = await read(answer('third'));
    expect([label(fresh), fresh.stale]).toEqual(['second', false]);
    expect(calls).toBe(2);
  });

  it('waits for a refresh when the data is older than ten minutes', async () => {
    await read(answer('first'));
    clock.time += 10 * MINUTE;

    expect(label(await read(answer('second')))).toBe('second');
  });

  it.each<ProviderErrorCode>(['unavailable', 'timeout', 'rate_limited'])(
    'falls back on data of up to an hour when a refresh ends in %s',
    async (code) => {
      await read(answer('first'));
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
      await read(answer('first'));
      clock.time += 11 * MINUTE;

      await expect(read(fail(code))).rejects.toMatchObject({ code });
      clock.time += 31_000;
      await expect(read(fail('unavailable'))).rejects.toMatchObject({ code: 'unavailable' });
    },
  );

  it('remembers a refusal for thirty seconds and no longer', async () => {
    await expect(read(fail('unauthorized'))).rejects.toMatchObject({ code: 'unauthorized' });
    clock.time += 29_999;
    await expect(read(answer('now'))).rejects.toMatchObject({ code: 'unauthorized' });
    expect(calls).toBe(1);

    clock.time += 1;
    expect(label(await read(answer('now')))).toBe('now');
  });

  it('counts down the wait of a remembered rate limit', async () => {
    await expect(read(fail('rate_limited', 41))).rejects.toMatchObject({ retryAfterSeconds: 41 });
    clock.time += 20_000;

    await expect(read(answer('now'))).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 21 });
    expect(calls).toBe(1);
  });

  it.each<ProviderErrorCode>(['unavailable', 'timeout'])('asks again at once after %s', async (code) => {
    await expect(read(fail(code))).rejects.toMatchObject({ code });

    expect(label(await read(answer('now')))).toBe('now');
  });

  it('lets fifty concurrent readers share one refresh', async () => {
    const reads = await Promise.all(Array.from({ length: 50 }, () => read(answer('shared'))));

    expect(calls).toBe(1);
    expect(new Set(reads.map(label))).toEqual(new Set(['shared']));
  });

  it('gives up waiting in time, and keeps what the refresh brings later', async () => {
    let finish: (value: ProviderWork) => void = () => undefined;
    const slow = new Promise<ProviderWork>((resolve) => {
      finish = resolve;
    });

    await expect(cache.read('key', 'github', () => slow, 1)).rejects.toMatchObject({ code: 'timeout' });
    finish(work('late'));
    await settled();

    expect(label(await read(answer('again')))).toBe('late');
    expect(calls).toBe(0);
  });

  it('keeps the data of a credential that rotated during the refresh under its successor', async () => {
    await cache.read(
      'old',
      'github',
      () => {
        cache.alias('old', 'new');
        return Promise.resolve(work('rotated'));
      },
      1000,
    );

    expect(label(await cache.read('new', 'github', answer('again'), 1000))).toBe('rotated');
    expect(calls).toBe(0);
  });
});
