import { once } from 'node:events';
import { Agent, type IncomingMessage, request, type RequestOptions } from 'node:http';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { withFolder } from './support/fixtures.js';
import { requestsPerSecond } from './support/http-client.js';
import { processorTimeMs, sandboxProcessorTimeMs } from './support/process-usage.js';
import { beat, beatsPerSecond, openSockets } from './support/beating-sockets.js';
import { type Outcome, median, print, spread } from './support/report.js';
import { type SandboxService, SandboxStatuses, withSandboxService } from './support/sandbox-service.js';
import { startBaseline } from './support/started-programs.js';

const SANDBOXES = '/api/v1/sandboxes';
const SMALL = '/api/tools';
const FILE_BYTES = 64_000_000;
const MAX_ADDED_MS = 0.5;
const MIN_THROUGHPUT = 0.9;
/** Processor time against that of a proxy that does nothing but copy. */
const MAX_COST = 1;
/** Many short rounds in turns, so that other load of the machine hits all ways alike. */
const ROUNDS = 8;
const WARM_UPS = 3;
const IN_ROUND = 150;
const AT_ONCE = 16;
const LOAD: Load = { seconds: 1, connections: AT_ONCE };
/** A sandbox that may use so much of a processor, which is less than client and service leave it on two. */
const PACED_CPU = 0.1;
/** As many connections as keep its agent server busy, and as long that opening them does not count. */
const PACED_LOAD: Load = { seconds: 3, connections: 128 };
const PACED_ROUNDS = 5;
const PACED = 'paced';
const SPECS = JSON.stringify([{ id: 'slipway' }, { id: PACED, resources: { cpu: PACED_CPU } }]);
/** The kernel gives a group its time every 100 ms, so a second may hold a tenth more. */
const MAX_SHARE = PACED_CPU * 1.15;
/** With less, something else than the agent server has set the pace. */
const MIN_SHARE = PACED_CPU * 0.9;

/** How something is measured that comes per second. */
interface Load {
  seconds: number;
  connections: number;
}

/** A way to the agent server. */
interface Way {
  name: string;
  /** Where HTTP requests go. */
  http: RequestOptions;
  /** Before the path of a request. */
  prefix: string;
  /** Before the path of a WebSocket; null: it forwards none. */
  socket: string | null;
  /** The process in between. */
  pid: number | null;
}

/** What one round came to. */
interface Round {
  /** Medians of single requests and of single frames, milliseconds. */
  requestMs: number;
  frameMs: number;
  /** Per second. */
  requests: number;
  frames: number;
  fileMb: number;
  /** Processor time of the process in between for each of the many requests, milliseconds. */
  cpuMs: number;
}

const KINDS = ['requests', 'frames', 'fileMb'] as const;
const NAMES = { requests: 'requests', frames: 'WebSocket frames', fileMb: 'MB of a file' };

/**
 * The agent server of a process sandbox: straight at its Unix socket, through its port, and through the path; and through
 * a proxy that only copies, which is the least that a process of Node.js can do. Where fewer processors are free than the
 * client, the proxy and the agent server take, requests per second say how these share them. Then the same of a sandbox
 * whose specification limits its processors, as operators do: there the agent server sets the pace.
 */
export async function benchPassThrough(): Promise<Outcome[]> {
  const profiles = process.env['BENCH_PROFILE'];
  const nodeArgs = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profiles)}`];
  return await withFolder(async (folder) => {
    const file = path.join(folder, 'specs.json');
    await writeFile(file, SPECS);
    const environment = { SANDBOX_EXPOSE: 'ports', SANDBOX_SPECS_FILE: file };
    return await withSandboxService(environment, measure, nodeArgs);
  });
}

async function measure(service: SandboxService): Promise<Outcome[]> {
  const statuses = await SandboxStatuses.watch(service.database);
  const saturated = await startSandbox(service, statuses, '');
  const bare = await startBaseline('bare-proxy.ts', { TARGET_SOCKET: saturated.socketPath });
  let outcomes: Outcome[];
  try {
    const ways = waysTo(service, saturated);
    ways.splice(1, 0, {
      name: 'bare proxy',
      http: at(bare.url),
      prefix: '',
      socket: null,
      pid: bare.pid,
    });
    outcomes = await compare(ways, saturated.key);
  } finally {
    await bare.stop();
  }
  const paced = await startSandbox(service, statuses, `?sandbox_spec_id=${PACED}`);
  return [...outcomes, ...(await comparePaced(waysTo(service, paced), paced))];
}

interface StartedSandbox {
  id: string;
  key: string;
  socketPath: string;
  /** Address of its port. */
  exposed: string;
}

async function startSandbox(
  service: SandboxService,
  statuses: SandboxStatuses,
  query: string,
): Promise<StartedSandbox> {
  const [client] = service.clients;
  const id = jsonText(await client.json({ method: 'POST', path: SANDBOXES + query }), 'id') ?? '';
  await statuses.until(id, 'RUNNING');
  const [sandbox] = jsonList(await client.json({ method: 'GET', path: `${SANDBOXES}?id=${id}` }));
  return {
    id,
    key: jsonText(sandbox, 'session_api_key') ?? '',
    socketPath: await socketOf(service, id),
    exposed: jsonText(jsonList(sandbox, 'exposed_urls')[0], 'url') ?? '',
  };
}

async function compare(ways: Ways, key: string): Promise<Outcome[]> {
  const file = await makeFile(ways[0], key);
  const rounds = ways.map((): Round[] => []);
  for (let round = 0; round < WARM_UPS + ROUNDS; round += 1) {
    for (const [index, way] of ways.entries()) {
      const result = await measureOnce(way, key, file);
      if (round >= WARM_UPS) {
        rounds[index]?.push(result);
      }
    }
  }
  ways.forEach(({ name }, index) => printRounds(name, rounds[index] ?? []));
  const [direct = [], bare = []] = rounds;
  return ways
    .slice(2)
    .flatMap((way, index) => outcomesOf(way, { ours: rounds[index + 2] ?? [], direct, bare }));
}

function at(address: string): RequestOptions {
  const { hostname, port } = new URL(address);
  return { hostname, port };
}

async function socketOf({ database }: SandboxService, id: string): Promise<string> {
  const { rows } = await database.query<{ address: string }>('SELECT address FROM sandboxes WHERE id = $1', [
    id,
  ]);
  return (rows[0]?.address ?? '').replace(/^unix:/, '');
}

type Ways = [Way, ...Way[]];

function waysTo({ url, pid }: SandboxService, { id, socketPath, exposed }: StartedSandbox): Ways {
  const prefix = `${SANDBOXES}/${id}/agent-server`;
  return [
    { name: 'direct', http: { socketPath }, prefix: '', socket: `ws+unix:${socketPath}:`, pid: null },
    { name: 'port', http: at(exposed), prefix: '', socket: exposed.replace('http', 'ws'), pid },
    { name: 'path', http: at(url), prefix, socket: url.replace('http', 'ws') + prefix, pid },
  ];
}

/** Rates alone: what a single request takes longer there is the wait for the next share of the processor. */
async function comparePaced(ways: Ways, { id, key }: StartedSandbox): Promise<Outcome[]> {
  const rounds = ways.map((): PacedRound[] => []);
  for (let round = 0; round < 1 + PACED_ROUNDS; round += 1) {
    for (const [index, way] of ways.entries()) {
      const requests = await withShare(id, async () => (await measureLoad(way, key, PACED_LOAD)).requests);
      const frames = await withShare(id, () => measureFrameRate(way.socket ?? '', key, PACED_LOAD));
      if (round > 0) {
        rounds[index]?.push({ requests, frames });
      }
    }
  }
  const [direct = []] = rounds;
  return ways
    .flatMap(({ name }, index) =>
      PACED_KINDS.map((kind) => pacedOutcome(name, kind, rounds[index] ?? [], direct)),
    )
    .slice(PACED_KINDS.length);
}

const PACED_KINDS = ['requests', 'frames'] as const;
type PacedRound = Record<(typeof PACED_KINDS)[number], { rate: number; share: number }>;

/** With what the sandbox used of a processor meanwhile; NaN where nothing limits it. */
async function withShare(id: string, load: () => Promise<number>): Promise<{ rate: number; share: number }> {
  const used = (): number => sandboxProcessorTimeMs(id) ?? NaN;
  const [before, startedAt] = [used(), performance.now()];
  const rate = await load();
  return { rate, share: (used() - before) / (performance.now() - startedAt) };
}

/** Without control groups, or where the sandbox did not use up its share, nothing was measured, and that is said. */
function pacedOutcome(
  name: string,
  kind: (typeof PACED_KINDS)[number],
  ours: readonly PacedRound[],
  direct: readonly PacedRound[],
): Outcome {
  const ratios = ours.map((round, index) => round[kind].rate / (direct[index]?.[kind].rate ?? NaN));
  const shares = [ours, direct].map((rounds) => rounds.map((round) => round[kind].share));
  const [ourShares = [], directShares = []] = shares;
  const isPaced = shares.every((each) => median(each) >= MIN_SHARE && median(each) <= MAX_SHARE);
  const rates = [ours, direct].map((rounds) => median(rounds.map((round) => round[kind].rate)).toFixed(0));
  const used = `the sandbox used ${spread(ourShares, 2)} processors, directly ${spread(directShares, 2)}`;
  return {
    what: `${name}: ${NAMES[kind]} per second / direct, with ${PACED_CPU} processors for the sandbox`,
    target: `>= ${MIN_THROUGHPUT}`,
    measured: `${isPaced ? '' : 'NOT PACED BY THE SANDBOX: '}${spread(ratios, 2)}, ${rates.join(' / ')}; ${used}`,
    reached: isPaced && median(ratios) >= MIN_THROUGHPUT,
  };
}

/** @returns the address of a large file in the sandbox */
async function makeFile(way: Way, key: string): Promise<string> {
  const agent = new Agent();
  const command = `head -c ${FILE_BYTES} /dev/urandom > file.bin && pwd`;
  const answer = await ask(
    way,
    agent,
    key,
    '/api/bash/execute_bash_command',
    JSON.stringify({ command, timeout: 60 }),
  );
  const folder = (jsonText(JSON.parse(answer.toString('utf8')), 'stdout') ?? '').trim();
  agent.destroy();
  return `/api/file/download?path=${encodeURIComponent(`${folder}/file.bin`)}`;
}

async function measureOnce(way: Way, key: string, file: string): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const requestMs = await medianOf(IN_ROUND, () => ask(way, agent, key, SMALL));
  const load = await measureLoad(way, key, LOAD);
  const began = performance.now();
  const { length } = await ask(way, agent, key, file);
  if (length !== FILE_BYTES) {
    throw new Error(`${way.name}: the file has ${length} bytes`);
  }
  const fileMb = FILE_BYTES / 1e6 / ((performance.now() - began) / 1000);
  agent.destroy();
  const frames = way.socket === null ? { frameMs: NaN, frames: NaN } : await measureFrames(way.socket, key);
  return { requestMs, fileMb, ...load, ...frames };
}

async function measureLoad(
  { http: { hostname, port, socketPath }, prefix, pid }: Way,
  key: string,
  { seconds, connections }: Load,
): Promise<{ requests: number; cpuMs: number }> {
  const before = pid === null ? null : processorTimeMs(pid);
  const requests = await requestsPerSecond(
    `http://${hostname ?? 'localhost'}:${port ?? 80}`,
    [{ method: 'GET', path: prefix + SMALL, headers: { 'x-session-api-key': key } }],
    {
      duration: seconds,
      connections,
      ...(typeof socketPath === 'string' && { socketPath }),
    },
  );
  const after = pid === null ? null : processorTimeMs(pid);
  const used = before === null || after === null ? NaN : after - before;
  return { requests, cpuMs: used / (requests * seconds) };
}

async function measureFrames(address: string, key: string): Promise<{ frameMs: number; frames: number }> {
  const [first] = await openSockets(address, key, 1);
  const frameMs = await medianOf(IN_ROUND, () => beat(first));
  first.terminate();
  return { frameMs, frames: await measureFrameRate(address, key, LOAD) };
}

async function measureFrameRate(address: string, key: string, load: Load): Promise<number> {
  const sockets = await openSockets(address, key, load.connections);
  const rate = await beatsPerSecond(sockets, load.seconds);
  sockets.forEach((socket) => socket.terminate());
  return rate;
}

async function ask(way: Way, agent: Agent, key: string, address: string, body?: string): Promise<Buffer> {
  const outgoing = request({
    ...way.http,
    path: way.prefix + address,
    method: body === undefined ? 'GET' : 'POST',
    agent,
    headers: { 'x-session-api-key': key, 'content-type': 'application/json' },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(response, 'end');
  if (response.statusCode !== 200) {
    throw new Error(`${way.name}: ${address} responded ${response.statusCode}`);
  }
  return Buffer.concat(chunks);
}

async function medianOf(count: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < count; run += 1) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

function valuesOf(rounds: readonly Round[], kind: keyof Round): number[] {
  return rounds.map((round) => round[kind]);
}

/** Of each round, what was measured there on both ways. */
function ratiosOf(ours: readonly Round[], others: readonly Round[], kind: keyof Round): number[] {
  return ours.map((round, index) => round[kind] / (others[index]?.[kind] ?? NaN));
}

function printRounds(name: string, rounds: readonly Round[]): void {
  const shown = (kind: keyof Round, digits: number, unit: string): string[] => {
    const values = valuesOf(rounds, kind);
    return values.some(Number.isNaN) ? [] : [`${spread(values, digits)} ${unit}`];
  };
  const parts = [
    ...shown('requestMs', 2, 'ms for a request'),
    ...shown('frameMs', 2, 'ms for a frame'),
    ...KINDS.flatMap((kind) => shown(kind, 0, `${NAMES[kind]} per second`)),
    ...shown('cpuMs', 3, 'ms of processor time for a request'),
  ];
  print(`  ${name}: ${parts.join(', ')}`);
}

function outcomesOf(
  { name }: Way,
  { ours, direct, bare }: Record<'ours' | 'direct' | 'bare', Round[]>,
): Outcome[] {
  const latencies = (['requestMs', 'frameMs'] as const).map((kind): Outcome => {
    const added = ours.map((round, index) => round[kind] - (direct[index]?.[kind] ?? NaN));
    return {
      what: `${name}: what it adds to a ${kind === 'requestMs' ? 'request' : 'WebSocket frame and its answer'}`,
      target: `<= ${MAX_ADDED_MS} ms`,
      measured: `${spread(added, 2)} ms`,
      reached: median(added) <= MAX_ADDED_MS,
    };
  });
  const rates = KINDS.map((kind): Outcome => {
    const ratios = ratiosOf(ours, direct, kind);
    const ofBare = ratiosOf(bare, direct, kind);
    return {
      what: `${name}: ${NAMES[kind]} per second / direct`,
      target: `>= ${MIN_THROUGHPUT}`,
      measured: `${spread(ratios, 2)}${ofBare.some(Number.isNaN) ? '' : `; the bare proxy ${spread(ofBare, 2)}`}`,
      reached: median(ratios) >= MIN_THROUGHPUT,
    };
  });
  const costs = ratiosOf(ours, bare, 'cpuMs');
  return [
    ...latencies,
    ...rates,
    {
      what: `${name}: processor time for a request / that of the bare proxy`,
      target: `<= ${MAX_COST}`,
      measured: spread(costs, 2),
      reached: median(costs) <= MAX_COST,
    },
  ];
}
