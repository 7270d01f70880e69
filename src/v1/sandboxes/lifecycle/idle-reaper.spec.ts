import { describe, expect, it } from '@jest/globals';
import { durationText } from './idle-reaper.js';

describe('durationText', () => {
  it.each([
    [1, '1 second'],
    [90, '90 seconds'],
    [60, '1 minute'],
    [1800, '30 minutes'],
    [3600, '1 hour'],
    [5400, '90 minutes'],
    [172_800, '2 days'],
  ])('%s: %s', (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });
});
