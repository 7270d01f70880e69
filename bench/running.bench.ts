import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonNumber, parseJson } from '@slipway/common/json-access.js';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { postStart, type ReadyConversation, untilReady } from './support/conversation-starts.js';
import type { HttpClient } from './support/http-client.js';
import { processorTimeMs, processTree, residentMemoryMb, treeMemory } from './support/process-usage.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { type SandboxService, withSandboxService } from './support/sandbox-service.js';

const AT_ONCE = 100;
const RUNNING = Number(process.env['SLIPWAY_BENCH_RUNNING'] ?? 200);
const MAX_MEMORY_MB = 40;
/** More start tasks than that are not asked for in one request. */
const IDS_PER_REQUEST = 50;
const POLL_MS = 100;
const REQUESTS = 200;
const MAX_LIVE_MS = 50;
const MAX_SETTINGS_MS = 100;

/**
 * Many conversations without a repository in process sandboxes: requested at once, then all of them running.
 * BENCH_PROFILE=folder writes a CPU profile of the service to that folder.
 */
export async function benchRunning(): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    const environment = {
      SANDBOX_NETWORK_ALLOW: new URL(llm.url).host,
      MAX_RUNNING_SANDBOXES: `${RUNNING}`,
    };
    const profiles = process.env['BENCH_PROFILE'];
    const nodeArgs = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
    const measure = async (service: SandboxService): Promise<Outcome[]> => {
      const [client] = service.clients;
      const settings = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: llm.url };
      await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
      const first = Math.min(AT_ONCE, RUNNING);
      const before = processorTimeMs(service.pid) ?? NaN;
      const { ready, ms } = await startAtOnce(client, first);
      const usedMs = ((processorTimeMs(service.pid) ?? NaN) - before) / first;
      print(
        `  processor time of a start: service ${usedMs.toFixed(0)} ms, sandbox ${await sandboxTime(service, ready)}`,
      );
      const others = RUNNING > first ? (await startAtOnce(client, RUNNING - first)).ready : [];
      const all = [...ready, ...others];
      return [
        {
          what: `${first} conversations requested at once are READY`,
          target: 'all',
          measured: `${ready.length} after ${(ms / 1000).toFixed(1)} s (${(ms / first).toFixed(0)} ms each)`,
          reached: ready.length === first,
        },
        ...(await memoryOutcomes(service, all)),
        await latencyOutcome(client, '/health/live', all.length, MAX_LIVE_MS),
        await latencyOutcome(client, '/api/settings', all.length, MAX_SETTINGS_MS),
      ];
    };
    return await withSandboxService(environment, measure, nodeArgs);
  } finally {
    await llm.close();
  }
}

async function startAtOnce(
  client: HttpClient,
  count: number,
): Promise<{ ready: ReadyConversation[]; ms: number }> {
  const startedAt = performance.now();
  const tasks = await Promise.all(Array.from({ length: count }, async () => await postStart(client, null)));
  const ids = tasks.map(({ taskId }) => taskId);
  const ready: ReadyConversation[] = [];
  for (let from = 0; from < count; from += IDS_PER_REQUEST) {
    ready.push(...(await untilReady(client, ids.slice(from, from + IDS_PER_REQUEST), POLL_MS)));
  }
  return { ready, ms: performance.now() - startedAt };
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
  const ofService = residentMemoryMb(service.pid).toFixed(0);
  return [
    {
      what: `memory (PSS) of each of ${running.length} sandboxes that run`,
      target: `<= ${MAX_MEMORY_MB} MB`,
      measured: `${spread(known, 0)} MB (the service: RSS ${ofService} MB)`,
      reached: median(known) <= MAX_MEMORY_MB,
    },
  ];
}

async function programPid({ dataDir }: SandboxService, sandboxId: string): Promise<number> {
  const record = await readFile(path.join(dataDir, 'sandboxes', sandboxId, 'program.json'), 'utf8');
  return jsonNumber(parseJson(record), 'pid') ?? 0;
}

/** One request after the other. */
async function latencyOutcome(
  client: HttpClient,
  requested: string,
  running: number,
  maxMs: number,
): Promise<Outcome> {
  const times: number[] = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    times.push((await client.expectOk({ method: 'GET', path: requested })).ms);
  }
  const p99 = times.toSorted((a, b) => a - b)[Math.floor(REQUESTS * 0.99)] ?? NaN;
  return {
    what: `p99 of ${requested} while ${running} sandboxes run`,
    target: `<= ${maxMs} ms`,
    measured: `${p99.toFixed(1)} ms (median ${median(times).toFixed(1)} ms)`,
    reached: p99 <= maxMs,
  };
}
