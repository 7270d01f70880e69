import { describe, expect, it } from '@jest/globals';
import { nextTimes, scheduleProblem, timezoneProblem } from './schedule.js';

function times(schedule: string, timezone: string, after: string, count = 3): string[] {
  return nextTimes({ schedule, timezone }, Date.parse(after), count).map((time) =>
    time.toISOString().slice(0, 16),
  );
}

describe('the next times of a schedule', () => {
  it.each([
    ['0 9 * * 1-5', 'UTC', '2026-11-20T09:00:00Z', '2026-11-23T09:00 2026-11-24T09:00 2026-11-25T09:00'],
    ['*/20 * * * *', 'UTC', '2026-11-20T09:00:30Z', '2026-11-20T09:20 2026-11-20T09:40 2026-11-20T10:00'],
    [
      '0 9 * * *',
      'Europe/Berlin',
      '2026-03-28T00:00:00Z',
      '2026-03-28T08:00 2026-03-29T07:00 2026-03-30T07:00',
    ],
    // 02:30 does not exist on that day.
    [
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00:00Z',
      '2026-03-29T01:30 2026-03-30T00:30 2026-03-31T00:30',
    ],
    ['0 0 29 2 *', 'UTC', '2026-11-20T00:00:00Z', '2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00'],
    ['0 0 L * *', 'UTC', '2026-11-20T00:00:00Z', '2026-11-30T00:00 2026-12-31T00:00 2027-01-31T00:00'],
    // The parser goes from day to day, so it is not asked for those of 2072 and 2112.
    ['0 0 * 2 1#5', 'UTC', '2026-11-20T00:00:00Z', '2044-02-29T00:00'],
  ])('%s in %s after %s', (schedule, timezone, after, expected) => {
    expect(times(schedule, timezone, after).join(' ')).toBe(expected);
  });

  // Clocks are set back by half an hour, at two.
  it('go on after a day with half an hour more', () => {
    expect(times('0 2 * * *', 'Australia/Lord_Howe', '2027-04-03T12:00:00Z', 1)).toEqual([
      '2027-04-04T15:30',
    ]);
  });

  // 02:30 comes twice on that day.
  it('are one a day when clocks are set back', () => {
    const days = times('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z').map((time) =>
      time.slice(0, 10),
    );
    expect(new Set(days).size).toBe(3);
  });
});

describe('a schedule', () => {
  it.each(['* * * * *', '0 9 * * 1-5', '5,35 */2 1 JAN,MAR THU', '0 0 ? * FRI#1', '0  9 * * *'])(
    'may be %s',
    (text) => {
      expect(scheduleProblem(text, 'UTC')).toBeNull();
    },
  );

  it.each([
    '',
    '* * * *',
    '0 0 9 * * *',
    '@daily',
    'H 9 * * *',
    'H/5 * * * *',
    '60 * * * *',
    '*/0 * * * *',
    '0 0 30 2 *',
    '* '.repeat(150),
  ])('may not be %s', (text) => {
    expect(scheduleProblem(text, 'UTC')).toEqual(expect.any(String));
  });

  it.each([
    ['60 * * * *', /got value 60 expected range 0-59/],
    ['0 0 30 2 *', /day of month/],
    ['0 9 * *', /five fields/],
  ])('%s is refused with what is wrong with it', (text, expected) => {
    expect(scheduleProblem(text, 'UTC')).toMatch(expected);
  });

  it.each([
    ['Europe/Berlin', true],
    ['UTC', true],
    ['Mars/Base', false],
    ['+02:00', false],
    ['', false],
  ])('of the time zone %s is good: %s', (timezone, isGood) => {
    expect(timezoneProblem(timezone) === null).toBe(isGood);
  });
});
