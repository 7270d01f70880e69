import { describe, expect, it } from '@jest/globals';
import { retryDelay } from './model-call.js';

describe('retryDelay', () => {
  it.each([
    [0, 0, 1_000],
    [1, 0, 2_000],
    [2, 0, 4_000],
    [0, 5_000, 5_000],
    [2, 500, 4_000],
    [0, 3_600_000, 30_000],
  ])('attempt %d, provider asks for %d ms: %d ms', (attempt, retryAfter, delay) => {
    expect(retryDelay(attempt, retryAfter)).toBe(delay);
  });
});
