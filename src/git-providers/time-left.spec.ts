import { describe, expect, it } from '@jest/globals';
import { GitProviderError } from './git-provider.error.js';
import { timeLeft } from './time-left.js';

const call = { signal: new AbortController().signal, deadlineAt: 12_000 };

describe('timeLeft', () => {
  it.each([
    [0, 11_750],
    [11_749, 1],
  ])('at %d ms of 12,000 is %d', (now, expected) => {
    expect(timeLeft(call, now)).toBe(expected);
  });

  it.each([11_750, 12_000, 13_000])('at %d ms of 12,000 is a timeout', (now) => {
    expect(() => timeLeft(call, now)).toThrow(new GitProviderError('timeout'));
  });
});
