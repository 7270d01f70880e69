import { jest } from '@jest/globals';
import { until } from './until.js';

/**
 * Does something whose deadline passes once it has come so far, however slow the machine is.
 *
 * @param deadline of the work, in milliseconds; no other timer may be as long
 * @param others deadlines that pass at once, in milliseconds
 */
export async function pastDeadline<T>(
  work: () => Promise<T>,
  hasComeSoFar: () => boolean | Promise<boolean>,
  deadline: number,
  others: readonly number[] = [],
): Promise<T> {
  const { setTimeout: start } = globalThis;
  const passing: (() => void)[] = [];
  const timers = jest.spyOn(globalThis, 'setTimeout').mockImplementation((pass, milliseconds) => {
    if (milliseconds === deadline) {
      passing.push(pass);
    }
    return start(pass, others.includes(milliseconds ?? 0) ? 0 : milliseconds);
  });
  try {
    const done = work();
    await until(async () => passing.length > 0 && (await hasComeSoFar()));
    passing.forEach((pass) => pass());
    return await done;
  } finally {
    timers.mockRestore();
  }
}
