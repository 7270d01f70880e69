import { setTimeout as delay } from 'node:timers/promises';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { streamStart } from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import type { HttpClient } from './support/http-client.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { removeSandboxes, type SandboxService, withSandboxService } from './support/sandbox-service.js';

const ROUNDS = 12;
const WARM_UP_ROUNDS = 4;
const MAX_READY_MS = 120;
/** What a warm agent server loads before anybody asks, it loads shortly after it can be claimed. */
const SETTLE_MS = 1_000;

/** From POST to READY without a repository: a user who gets warm sandboxes, and one whose settings ask for others, in turns. */
export async function benchWarm(): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    const environment = { SANDBOX_NETWORK_ALLOW: new URL(llm.url).host, SANDBOX_WARM: '1' };
    return await withSandboxService(environment, async (service) => {
      const [warmClient, coldClient] = service.clients;
      await storeModel(warmClient, llm.url);
      await storeModel(coldClient, llm.url, { remote_runtime_resource_factor: 2 });
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
      const ratio = median(warm) / median(cold);
      return [
        {
          what: 'conversation READY in a warm process sandbox (and against a cold one)',
          target: `<= ${MAX_READY_MS} ms`,
          measured: `${spread(warm, 0)} ms (x${ratio.toFixed(2)} of ${median(cold).toFixed(0)} ms)`,
          reached: median(warm) <= MAX_READY_MS,
        },
      ];
    });
  } finally {
    await llm.close();
  }
}

/** Milliseconds from the request of a conversation until it is READY. Its sandbox is removed afterwards. */
export async function readyAfter({ database }: SandboxService, client: HttpClient): Promise<number> {
  const ms = await streamStart(client, null);
  await removeSandboxes(client, database);
  return ms;
}

/** Waits until a warm sandbox is there to be claimed, as one that has waited for somebody. */
export async function untilWarm({ database }: SandboxService): Promise<void> {
  await untilTrue(async () => {
    const { rows } = await database.query(`SELECT FROM warm_sandboxes WHERE status = 'READY'`);
    return rows.length === 1;
  }, 'a warm sandbox');
  await delay(SETTLE_MS);
}

/** Stores settings with which conversations start. */
export async function storeModel(client: HttpClient, url: string, others: object = {}): Promise<void> {
  const settings = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: url, ...others };
  await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
}
