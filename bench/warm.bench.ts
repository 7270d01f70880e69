import { setTimeout as delay } from 'node:timers/promises';
import { readyAfter, storeModel, withConversations } from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import { atMost, median, type Outcome, print, spread } from './support/report.js';
import type { SandboxService } from './support/sandbox-service.js';

const ROUNDS = 12;
const WARM_UP_ROUNDS = 4;
const MAX_READY_MS = 120;
/** What a warm agent server loads before it is claimed, it loads shortly after it can be. */
const SETTLE_MS = 1_000;

/** Measures POST to READY without a repository, in turns with warm sandboxes and with settings that ask for others. */
export async function benchWarm(): Promise<Outcome[]> {
  return await withConversations({ SANDBOX_WARM: '1' }, async (service, modelUrl) => {
    const [warmClient, coldClient] = service.clients;
    await storeModel(coldClient, modelUrl, { remote_runtime_resource_factor: 2 });
    const warm: number[] = [];
    const cold: number[] = [];
    for (let round = 1; round <= WARM_UP_ROUNDS + ROUNDS; round += 1) {
      await untilWarm(service);
      const coldMs = await readyAfter(service, coldClient);
      const warmMs = await readyAfter(service, warmClient);
      if (round > WARM_UP_ROUNDS) {
        warm.push(warmMs);
        cold.push(coldMs);
      }
    }
    print(`  READY after ${spread(warm, 0)} ms warm, ${spread(cold, 0)} ms cold`);
    const note = `x${(median(warm) / median(cold)).toFixed(2)} of ${median(cold).toFixed(0)} ms`;
    return [
      atMost('conversation READY in a warm process sandbox (and against a cold one)', warm, MAX_READY_MS, {
        note,
      }),
    ];
  });
}

/** Waits until a warm sandbox is there to be claimed, as one that has waited for a while. */
export async function untilWarm({ database }: SandboxService): Promise<void> {
  await untilTrue(async () => {
    const { rows } = await database.query(`SELECT FROM warm_sandboxes WHERE status = 'READY'`);
    return rows.length === 1;
  }, 'a warm sandbox');
  await delay(SETTLE_MS);
}
