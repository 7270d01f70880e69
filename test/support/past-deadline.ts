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
  const { setTimeout: start, clearTimeout: clear } = globalThis;
  const passing = new Map<unknown, () => void>();
  const starting = jest.spyOn(globalThis, 'setTimeout').mockImplementation((pass, milliseconds, ...given) => {
    const timer = start(pass, others.includes(milliseconds ?? 0) ? 0 : milliseconds, ...given);
    if (milliseconds === deadline) {
      passing.set(timer, () => {
        clear(timer);
        pass(...given);
      });
    }
    return timer;
  });
  const clearing = jest.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    passing.delete(timer);
    clear(timer);
  });
  let isOver = false;
  const end = (): void => void (isOver = true);
  try {
    const done = work();
    done.then(end, end);
    const isTime = until(async () => isOver || (passing.size > 0 && (await hasComeSoFar())));
    await Promise.race([isTime, done]);
    if (!isOver) {
      passing.forEach((pass) => pass());
    }
    return await done;
  } finally {
    end();
    starting.mockRestore();
    clearing.mockRestore();
  }
}
