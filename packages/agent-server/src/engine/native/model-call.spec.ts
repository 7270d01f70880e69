import { expect, it } from '@jest/globals';
import { nextPause, type RetrySettings } from './model-call.js';

/** All pauses of a call that always fails, in seconds; a provider that names none is a 0. */
function pauses(named: number[], settings: RetrySettings = {}): number[] {
  const found: number[] = [];
  for (;;) {
    const pause = nextPause(
      {
        retries: found.length,
        waitedMs: found.reduce((sum, next) => sum + next, 0) * 1000,
        namedMs: (named[Math.min(found.length, named.length - 1)] ?? 0) * 1000,
      },
      settings,
    );
    if (pause === null) {
      return found;
    }
    found.push(pause / 1000);
  }
}

it.each([
  ['grows', [0], {}, [2, 4, 8, 16, 32]],
  ['is what the provider names', [12.5], {}, [12.5, 12.5, 12.5, 12.5, 12.5]],
  ['outlasts a minute when the provider names short ones', [1], {}, [1, 1, 1, 1, 1, 55]],
  ['mixes', [90, 0], {}, [90, 4, 8, 16, 32]],
  ['waits minutes if asked', [90], {}, [90, 90, 90, 90, 90]],
  ['does not wait for hours', [3_600], {}, [2, 4, 8, 16, 32]],
  ['takes the number of the settings', [0], { num_retries: 2 }, [2, 4]],
  ['takes a number that is larger', [0], { num_retries: 7 }, [2, 4, 8, 16, 32, 64, 64]],
  ['may be none', [7], { num_retries: 0 }, []],
  [
    'takes bounds',
    [0],
    { num_retries: 4, retry_multiplier: 8, retry_min_wait: 10, retry_max_wait: 20 },
    [10, 16, 20, 20],
  ],
])('nextPause: %s', (_, named, settings, expected) => {
  expect(pauses(named, settings)).toEqual(expected);
});
