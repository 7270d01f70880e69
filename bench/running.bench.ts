import { startAtOnce, type ReadyConversation, withConversations } from './support/conversation-starts.js';
import type { HttpClient } from './support/http-client.js';
import { processorTimeMs, processTree, residentMemoryMb, treeMemory } from './support/process-usage.js';
import { atMost, median, type Outcome, percentile, print, spread } from './support/report.js';
import { programPid, type SandboxService } from './support/sandbox-service.js';

const AT_ONCE = 100;
const RUNNING = Number(process.env['SLIPWAY_BENCH_RUNNING'] ?? 200);
const MAX_MEMORY_MB = 40;
const REQUESTS = 200;
const MAX_LIVE_MS = 50;
const MAX_SETTINGS_MS = 100;

/** Many conversations without a repository in process sandboxes: requested at once, then all of them running. */
export async function benchRunning(): Promise<Outcome[]> {
  return await withConversations({ MAX_RUNNING_SANDBOXES: `${RUNNING}` }, async (service) => {
    const [client] = service.clients;
    const first = Math.min(AT_ONCE, RUNNING);
    const before = processorTimeMs(service.pid) ?? NaN;
    const { conversations, ms } = await startAtOnce(client, first, null);
    const usedMs = ((processorTimeMs(service.pid) ?? NaN) - before) / first;
    print(
      `  processor time of a start: service ${usedMs.toFixed(0)} ms, sandbox ${await sandboxTime(service, conversations)}`,
    );
    const others = (await startAtOnce(client, RUNNING - first, null)).conversations;
    return [
      {
        what: `${first} conversations requested at once are READY`,
        target: 'all',
        measured: `${conversations.length} after ${(ms / 1000).toFixed(1)} s (${(ms / first).toFixed(0)} ms each)`,
        reached: conversations.length === first,
      },
      ...(await memoryOutcomes(service, [...conversations, ...others])),
      await latencyOutcome(client, '/health/live', MAX_LIVE_MS),
      await latencyOutcome(client, '/api/settings', MAX_SETTINGS_MS),
    ];
  });
}

/** What all processes of a sandbox together have used since they were started. */
async function sandboxTime(service: SandboxService, ready: readonly ReadyConversation[]): Promise<string> {
  const times = await Promise.all(
    ready.map(async ({ sandboxId }) =>
      processTree(await programPid(service, sandboxId)).reduce(
        (sum, pid) => sum + (processorTimeMs(pid) ?? 0),
        0,
      ),
    ),
  );
  return `${spread(times, 0)} ms`;
}

async function memoryOutcomes(
  service: SandboxService,
  running: readonly ReadyConversation[],
): Promise<Outcome[]> {
  const trees = await Promise.all(
    running.map(async ({ sandboxId }) => treeMemory(await programPid(service, sandboxId))),
  );
  const known = trees.filter((tree) => tree !== null).map(({ pss }) => pss);
  if (known.length === 0) {
    print('  memory of sandboxes: not measured (the kernel does not tell)');
    return [];
  }
  const note = `the service: RSS ${residentMemoryMb(service.pid).toFixed(0)} MB`;
  const what = `memory (PSS) of each of ${running.length} sandboxes that run`;
  return [atMost(what, known, MAX_MEMORY_MB, { unit: 'MB', note })];
}

/** One request after the other. */
async function latencyOutcome(client: HttpClient, path: string, maxMs: number): Promise<Outcome> {
  const times: number[] = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    times.push((await client.expectOk({ method: 'GET', path })).ms);
  }
  const p99 = percentile(
    times.toSorted((a, b) => a - b),
    0.99,
  );
  const note = `median ${median(times).toFixed(1)} ms`;
  return atMost(`p99 of ${path} while ${RUNNING} sandboxes run`, p99, maxMs, { digits: 1, note });
}
