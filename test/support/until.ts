import { setImmediate } from 'node:timers/promises';

/** Longer than any test may take: Jest cannot end what waits for a test that failed. */
const PATIENCE_MS = 300_000;

/**
 * Waits until a condition holds; the test's own timeout bounds it.
 *
 * @throws Error when it never does
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error('waited in vain');
    }
    await setImmediate();
  }
}
