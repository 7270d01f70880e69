import { describe, expect, it } from '@jest/globals';
import { nextTimestamp, normalizeTimestamp } from './event-timestamp.js';

const NOON = Date.UTC(2026, 0, 31, 12);

describe('nextTimestamp', () => {
  it.each([
    [undefined, '2026-01-31T12:00:00.000000'],
    ['2026-01-31T11:59:59.999999', '2026-01-31T12:00:00.000000'],
    ['2026-01-31T12:00:00.000000', '2026-01-31T12:00:00.000001'],
    ['2026-01-31T12:00:00.000999', '2026-01-31T12:00:00.001000'],
    ['2026-01-31T12:59:59.999999', '2026-01-31T13:00:00.000000'],
  ])('after %s', (previous, expected) => {
    expect(nextTimestamp(previous, NOON)).toBe(expected);
  });
});

describe('normalizeTimestamp', () => {
  it.each([
    ['2026-01-31T12:00:00', '2026-01-31T12:00:00.000000'],
    ['2026-01-31 12:00:00.5', '2026-01-31T12:00:00.500000'],
    ['2026-01-31T12:00:00.123456Z', '2026-01-31T12:00:00.123456'],
    ['2026-01-31T13:00:00+01:00', '2026-01-31T12:00:00.000000'],
    ['2026-01-31T13:00:00+0100', '2026-01-31T12:00:00.000000'],
    ['2026-02-31T99:00:00', null],
    ['yesterday', null],
    ['', null],
  ])('%s', (text, expected) => {
    expect(normalizeTimestamp(text)).toBe(expected);
  });
});
