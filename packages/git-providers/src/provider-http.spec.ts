import { describe, expect, it } from '@jest/globals';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { GitProviderError } from './git-provider.js';
import { requestBounds, retryOnce, type RetryTiming } from './provider-http.js';

const NOW = 1_000_000;

/** Runs an attempt that fails as told, time after time, then succeeds. */
async function run(
  failures: Error[],
  options: { deadlineAt?: number; random?: number; abort?: boolean } = {},
) {
  const waits: number[] = [];
  const controller = new AbortController();
  const timing: RetryTiming = {
    delay: async (ms, signal) => {
      waits.push(ms);
      if (options.abort) {
        controller.abort();
      }
      signal.throwIfAborted();
      return Promise.resolve();
    },
    random: () => options.random ?? 0,
    now: () => NOW,
  };
  let attempts = 0;
  const outcome = await retryOnce(
    () => {
      const failure = failures[attempts];
      attempts += 1;
      return failure ? Promise.reject(failure) : Promise.resolve('done');
    },
    { signal: controller.signal, deadlineAt: options.deadlineAt ?? NOW + 10_000 },
    timing,
  ).catch((error: unknown) => error);
  return { outcome, attempts, waits };
}

describe('retryOnce', () => {
  it('does not wait after a success', async () => {
    expect(await run([])).toEqual({ outcome: 'done', attempts: 1, waits: [] });
  });

  it.each([
    ['a 5xx', new GitProviderError('unavailable')],
    ['a 503 with a short pause', new GitProviderError('unavailable', { retryAfterSeconds: 2 })],
    ['a broken connection', new UpstreamError('network', 'https://git.example')],
    ['a broken body', new UpstreamError('malformed', 'https://git.example')],
  ])('tries again after %s', async (_, failure) => {
    expect(await run([failure])).toEqual({ outcome: 'done', attempts: 2, waits: [250] });
  });

  it.each([
    ['a long pause', new GitProviderError('unavailable', { retryAfterSeconds: 3 }), 'unavailable'],
    ['a rejected token', new GitProviderError('unauthorized'), 'unauthorized'],
    ['a rate limit', new GitProviderError('rate_limited'), 'rate_limited'],
    ['a deadline', new UpstreamError('timeout', 'https://git.example'), 'timeout'],
    ['a refused address', new UpstreamError('refused', 'https://git.example'), 'unavailable'],
    ['a redirect elsewhere', new UpstreamError('redirect', 'https://git.example'), 'unavailable'],
    ['an oversized answer', new UpstreamError('too_large', 'https://git.example'), 'unavailable'],
    ['a defect', new TypeError('of ours'), 'unavailable'],
  ])('gives up at once after %s', async (_, failure, code) => {
    expect(await run([failure])).toMatchObject({ outcome: { code }, attempts: 1, waits: [] });
  });

  it('tries no third time', async () => {
    const failures = [new GitProviderError('unavailable'), new GitProviderError('rate_limited')];
    expect(await run(failures)).toMatchObject({ outcome: { code: 'rate_limited' }, attempts: 2 });
  });

  it('spreads the pauses up to 750 ms', async () => {
    expect((await run([new GitProviderError('unavailable')], { random: 1 })).waits).toEqual([750]);
  });

  it('does not start a pause that would outlast the caller', async () => {
    const found = await run([new GitProviderError('unavailable')], { deadlineAt: NOW + 250 });
    expect(found).toMatchObject({ outcome: { code: 'unavailable' }, attempts: 1, waits: [] });
  });

  it('answers an abort during the pause as a timeout', async () => {
    const found = await run([new GitProviderError('unavailable')], { abort: true });
    expect(found).toMatchObject({ outcome: { code: 'timeout' }, attempts: 1 });
  });
});

const call = { signal: new AbortController().signal, deadlineAt: 12_000 };

describe('requestBounds', () => {
  it.each([
    [0, 11_750],
    [11_749, 1],
  ])('at %d ms of 12,000 is %d', (now, expected) => {
    expect(requestBounds(call, now)).toEqual({ signal: call.signal, work: call.signal, timeoutMs: expected });
  });

  it.each([11_750, 12_000, 13_000])('at %d ms of 12,000 is a timeout', (now) => {
    expect(() => requestBounds(call, now)).toThrow(new GitProviderError('timeout'));
  });

  it('name the user whose share a request takes', () => {
    expect(requestBounds({ ...call, userId: 'mona' }, 0)).toMatchObject({ holder: 'mona' });
  });
});
