import { setTimeout as delay } from 'node:timers/promises';

/** Jest cannot end what waits for a test that failed. A system test has more time, so that it says what never came. */
const MAX_WAIT_MS = 240_000;
/** Some conditions ask several applications, which takes longer than what they wait for. */
const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 100;

/**
 * Waits until a condition holds, looking less and less often. The timeout of most tests is shorter.
 *
 * @throws Error when it never does
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS;
  let pause = FIRST_PAUSE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error('the condition never held');
    }
    await delay(pause);
    pause = Math.min(pause * 1.5, MAX_PAUSE_MS);
  }
}
