import { describe, expect, it } from '@jest/globals';
import { WarmBackOff } from './warm-programs.js';

const MINUTE = 60_000;

describe('WarmBackOff', () => {
  const make = (): { backOff: WarmBackOff; clock: { at: number; now: () => number } } => {
    const clock = { at: 1_000_000, now: () => clock.at };
    return { backOff: new WarmBackOff(clock), clock };
  };

  it('waits twice as long after each failure, five minutes at most', () => {
    const { backOff } = make();
    const delays = Array.from({ length: 10 }, () => backOff.failed('f') / 1000);
    expect(delays).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  });

  it('allows another start when the time is over, and others meanwhile', () => {
    const { backOff, clock } = make();
    expect(backOff.allows('f')).toBe(true);
    backOff.failed('f');
    expect([backOff.allows('f'), backOff.allows('g')]).toEqual([false, true]);
    clock.at += 1_999;
    expect(backOff.allows('f')).toBe(false);
    clock.at += 1;
    expect(backOff.allows('f')).toBe(true);
  });

  it('forgets failures after a success, and after a long time without one', () => {
    const { backOff, clock } = make();
    backOff.failed('f');
    backOff.failed('f');
    backOff.succeeded('f');
    expect(backOff.allows('f')).toBe(true);
    expect(backOff.failed('f')).toBe(2_000);
    clock.at += 15 * MINUTE;
    expect(backOff.failed('f')).toBe(2_000);
  });
});
