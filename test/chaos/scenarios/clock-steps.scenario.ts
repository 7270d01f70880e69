import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';

/** Forth and back again: an hour, a day, and a clock that was a minute fast. */
const STEPS_MS = [3_600_000, 0, -3_600_000, 86_400_000, 0, -60_000, 0];
const BETWEEN_MS = 1_500;

export const clockSteps: Scenario = {
  name: 'clock-steps',
  what: 'The clock of the service (Date in its process, by a module that is loaded first) jumps by an hour and a day, and back.',
  isShort: false,
  run: async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'chaos-clock-'));
    const file = path.join(folder, 'ahead');
    const clock = new URL(`../support/stepped-clock.mjs?file=${encodeURIComponent(file)}`, import.meta.url);
    try {
      return await ChaosWorld.with({ nodeArgs: ['--import', clock.href] }, async (world) => {
        await world.start();
        const outcome = await world.underLoad(async () => {
          // A step is no excuse: whatever fails meanwhile is a problem.
          for (const step of STEPS_MS) {
            await writeFile(file, String(step));
            process.kill(world.service.pid, 'SIGUSR2');
            await wait(BETWEEN_MS);
          }
        });
        return { ...outcome, faults: STEPS_MS.length };
      });
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    }
  },
};
