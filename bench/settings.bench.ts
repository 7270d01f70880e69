import { createBenchUsers, settingsBody } from './support/bench-users.js';
import { HttpClient } from './support/http-client.js';
import { processorTimeMs } from './support/process-usage.js';
import { atMost, median, type Outcome, print, spread } from './support/report.js';
import { withSandboxService } from './support/sandbox-service.js';

const USERS = 500;
const ROUNDS = 5;
/** Enough for the just-in-time compilers to have done most of their work. */
const WARM_UP_ROUNDS = 2;
const PATH = '/api/settings';
const MAX_MS = { POST: 3, GET: 1.5 };

/** What one user waits for `POST` and `GET` of settings, one request at a time, each of another user. */
export async function benchSettings(): Promise<Outcome[]> {
  return await withSandboxService({}, async ({ url, pid, databaseUrl }) => {
    const keys = await createBenchUsers(databaseUrl, USERS, 'settings');
    const client = new HttpClient(url, '');
    try {
      const outcomes: Outcome[] = [];
      // POST first: it stores what GET reads.
      for (const method of ['POST', 'GET'] as const) {
        const rounds = { ms: [] as number[], cpu: [] as number[] };
        for (let round = 1; round <= WARM_UP_ROUNDS + ROUNDS; round += 1) {
          const before = processorTimeMs(pid) ?? NaN;
          const times = await timesOf(client, method, keys, round);
          const cpu = ((processorTimeMs(pid) ?? NaN) - before) / keys.length;
          if (round > WARM_UP_ROUNDS) {
            rounds.ms.push(median(times));
            rounds.cpu.push(cpu);
          }
        }
        print(
          `  ${method}: ${spread(rounds.ms, 2)} ms, processor time of the service ${spread(rounds.cpu, 2)} ms`,
        );
        const what = `${method} ${PATH}, median of ${USERS} users one at a time`;
        outcomes.push(atMost(what, rounds.ms, MAX_MS[method], { digits: 2 }));
      }
      return outcomes;
    } finally {
      client.close();
    }
  });
}

/** Each round stores other values. */
async function timesOf(
  client: HttpClient,
  method: 'POST' | 'GET',
  keys: string[],
  round: number,
): Promise<number[]> {
  const times: number[] = [];
  for (const [index, key] of keys.entries()) {
    const body = method === 'POST' ? { body: bodyOf(index, round) } : {};
    times.push((await client.expectOk({ method, path: PATH, key, ...body })).ms);
  }
  return times;
}

/** Leaves out the model, because the service would ask its server. */
function bodyOf(user: number, round: number): string {
  const settings: object = JSON.parse(settingsBody(user));
  const ofModel = { llm_model: undefined, llm_api_key: undefined, llm_base_url: undefined };
  return JSON.stringify({ ...settings, ...ofModel, max_iterations: round });
}
