import { once } from 'node:events';
import { Agent, type IncomingMessage, request, type RequestOptions } from 'node:http';
import path from 'node:path';
import { WebSocket } from 'ws';
import { jsonList, jsonText } from '../src/common/json-access.js';
import { requestsPerSecond } from './support/http-client.js';
import { processorTimeMs } from './support/process-usage.js';
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
const ROUNDS = 15;
const WARM_UPS = 3;
const LOAD_SECONDS = 1;
const IN_ROUND = 150;
const AT_ONCE = 16;

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
 * client, the proxy and the agent server take, requests per second say how these share them.
 */
export async function benchPassThrough(): Promise<Outcome[]> {
  const profiles = process.env['BENCH_PROFILE'];
  const nodeArgs = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profiles)}`];
  return await withSandboxService({ SANDBOX_EXPOSE: 'ports' }, measure, nodeArgs);
}

async function measure(service: SandboxService): Promise<Outcome[]> {
  const [client] = service.clients;
  const statuses = await SandboxStatuses.watch(service.database);
  const id = jsonText(await client.json({ method: 'POST', path: SANDBOXES }), 'id') ?? '';
  await statuses.until(id, 'RUNNING');
  const [sandbox] = jsonList(await client.json({ method: 'GET', path: `${SANDBOXES}?id=${id}` }));
  const key = jsonText(sandbox, 'session_api_key') ?? '';
  const socketPath = await socketOf(service, id);
  const bare = await startBaseline('bare-proxy.ts', { TARGET_SOCKET: socketPath });
  try {
    const exposed = jsonText(jsonList(sandbox, 'exposed_urls')[0], 'url') ?? '';
    return await compare(waysTo(service, { id, socketPath, exposed, bare }), key);
  } finally {
    await bare.stop();
  }
}

async function compare(ways: [Way, ...Way[]], key: string): Promise<Outcome[]> {
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

interface Addresses {
  id: string;
  socketPath: string;
  exposed: string;
  bare: { url: string; pid: number };
}

function waysTo({ url, pid }: SandboxService, { id, socketPath, exposed, bare }: Addresses): [Way, ...Way[]] {
  const prefix = `${SANDBOXES}/${id}/agent-server`;
  return [
    { name: 'direct', http: { socketPath }, prefix: '', socket: `ws+unix:${socketPath}:`, pid: null },
    { name: 'bare proxy', http: at(bare.url), prefix: '', socket: null, pid: bare.pid },
    { name: 'port', http: at(exposed), prefix: '', socket: exposed.replace('http', 'ws'), pid },
    { name: 'path', http: at(url), prefix, socket: url.replace('http', 'ws') + prefix, pid },
  ];
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
  const load = await measureLoad(way, key);
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
): Promise<{ requests: number; cpuMs: number }> {
  const before = pid === null ? null : processorTimeMs(pid);
  const requests = await requestsPerSecond(
    `http://${hostname ?? 'localhost'}:${port ?? 80}`,
    [{ method: 'GET', path: prefix + SMALL, headers: { 'x-session-api-key': key } }],
    {
      duration: LOAD_SECONDS,
      connections: AT_ONCE,
      ...(typeof socketPath === 'string' && { socketPath }),
    },
  );
  const after = pid === null ? null : processorTimeMs(pid);
  const used = before === null || after === null ? NaN : after - before;
  return { requests, cpuMs: used / (requests * LOAD_SECONDS) };
}

async function measureFrames(address: string, key: string): Promise<{ frameMs: number; frames: number }> {
  const sockets = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => await openSocket(`${address}/sockets/bash-events`, key)),
  );
  const [first] = sockets;
  if (!first) {
    throw new Error('there is no socket');
  }
  const frameMs = await medianOf(IN_ROUND, () => beat(first));
  const frames = await perSecond(AT_ONCE * IN_ROUND, (worker) => beat(sockets[worker] ?? first));
  sockets.forEach((socket) => socket.terminate());
  return { frameMs, frames };
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

async function openSocket(address: string, key: string): Promise<WebSocket> {
  const socket = new WebSocket(address, { headers: { 'x-session-api-key': key }, perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

/** There and back: the other end responds to the frame by itself. */
async function beat(socket: WebSocket): Promise<void> {
  const answered = once(socket, 'pong');
  socket.ping('beat');
  await answered;
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

/** With `AT_ONCE` workers at the same time. */
async function perSecond(count: number, work: (worker: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let left = count;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, worker) => {
      while (left > 0) {
        left -= 1;
        await work(worker);
      }
    }),
  );
  return count / ((performance.now() - startedAt) / 1000);
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
