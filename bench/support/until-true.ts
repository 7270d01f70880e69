import { setTimeout as delay } from 'node:timers/promises';

/** Often enough to see a moment well, and seldom enough to take no processor time from what is measured. */
const POLL_MS = 4;
const PATIENCE_MS = 120_000;

/** @throws Error when the condition does not come true within two minutes */
export async function untilTrue(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`${what} did not happen`);
    }
    await delay(POLL_MS);
  }
}
