import { appendFile, glob } from 'node:fs/promises';
import path from 'node:path';
import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { MessagesUnderFault } from '../support/messages-under-fault.js';
import { waitBetween } from '../support/pauses.js';

/** What a process leaves that was killed within a write. */
const TORN = '{"id":"0b9e2f6c-0000-4000-8000-000000000000","timestamp":"2026-01-01T00:00:00.0';

export const tornEventLog: Scenario = {
  name: 'torn-event-log',
  what: 'A sandbox is killed, and the last line of its event log is a part of an event; its user resumes it.',
  isShort: false,
  run: async ({ rounds }) =>
    ChaosWorld.with({}, async (world) => {
      await world.start();
      const messages = await MessagesUnderFault.start(world);
      const times = Math.ceil(rounds / 3);
      return await messages.during(times, async () => {
        for (let time = 0; time < times; time += 1) {
          await waitBetween(500, 1_500);
          await messages.killSandbox();
          const folder = path.join(world.journey.dataDir, 'sandboxes', messages.sandboxId);
          let torn = 0;
          for await (const file of glob('**/events.jsonl', { cwd: folder })) {
            await appendFile(path.join(folder, file), TORN);
            torn += 1;
          }
          if (torn === 0) {
            throw new Error('the sandbox has no event log');
          }
          await messages.resumeSandbox();
        }
      });
    }),
};
