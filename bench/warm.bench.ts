import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { postStart, untilReady } from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import type { HttpClient } from './support/http-client.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { removeSandboxes, type SandboxService, withSandboxService } from './support/sandbox-service.js';

const ROUNDS = 12;
const WARM_UP_ROUNDS = 4;
const MAX_READY_MS = 120;

/** From POST to READY without a repository: a user who gets warm sandboxes, and one whose settings ask for others, in turns. */
export async function benchWarm(): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    const environment = { SANDBOX_NETWORK_ALLOW: new URL(llm.url).host, SANDBOX_WARM: '1' };
    return await withSandboxService(environment, async (service) => {
      const [warmClient, coldClient] = service.clients;
      const model = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: llm.url };
      await store(warmClient, model);
      await store(coldClient, { ...model, remote_runtime_resource_factor: 2 });
      const warm: number[] = [];
      const cold: number[] = [];
      for (let round = 1; round <= WARM_UP_ROUNDS + ROUNDS; round += 1) {
        await untilTrue(async () => (await readyCount(service)) === 1, 'a warm sandbox');
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

async function readyAfter({ database }: SandboxService, client: HttpClient): Promise<number> {
  const startedAt = performance.now();
  const { taskId } = await postStart(client, null);
  await untilReady(client, [taskId]);
  const ms = performance.now() - startedAt;
  await removeSandboxes(client, database);
  return ms;
}

async function readyCount({ database }: SandboxService): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM warm_sandboxes WHERE status = 'READY'`,
  );
  return rows[0]?.count ?? 0;
}

async function store(client: HttpClient, settings: object): Promise<void> {
  await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
}
