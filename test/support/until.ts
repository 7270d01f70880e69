import { setImmediate } from 'node:timers/promises';

/** Waits until a condition holds; the test's own timeout bounds it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await setImmediate();
  }
}
