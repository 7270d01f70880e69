import { once } from 'node:events';
import { Agent, type IncomingMessage, request, type RequestOptions } from 'node:http';
import path from 'node:path';
import { WebSocket } from 'ws';
import { jsonList, jsonText } from '../src/common/json-access.js';
import { type Outcome, median, print, spread } from './support/report.js';
import { type SandboxService, SandboxStatuses, withSandboxService } from './support/sandbox-service.js';

const SANDBOXES = '/api/v1/sandboxes';
const SMALL = '/api/tools';
const FILE_BYTES = 64_000_000;
const MAX_ADDED_MS = 0.5;
const MIN_THROUGHPUT = 0.9;
/** Many short rounds in turns, so that other load of the machine hits all ways alike. */
const ROUNDS = 15;
const WARM_UPS = 3;
const IN_ROUND = 150;
const AT_ONCE = 16;

/** A way to the agent server. */
interface Way {
  name: string;
  /** Where HTTP requests go. */
  http: RequestOptions;
  /** Before the path of a request. */
  prefix: string;
  /** Before the path of a WebSocket. */
  socket: string;
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
}

const KINDS = ['requests', 'frames', 'fileMb'] as const;
const NAMES = { requests: 'requests', frames: 'WebSocket frames', fileMb: 'MB of a file' };

/** The agent server of a process sandbox: straight at its Unix socket, through its port, and through the path. */
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
  const ways = await waysTo(service, id, jsonText(jsonList(sandbox, 'exposed_urls')[0], 'url') ?? '');
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
  return ways.flatMap((way, index) => outcomesOf(way, rounds[index] ?? [], rounds[0] ?? [], index === 0));
}

function at(address: string): RequestOptions {
  const { hostname, port } = new URL(address);
  return { hostname, port };
}

async function waysTo(
  { url, database }: SandboxService,
  id: string,
  exposed: string,
): Promise<[Way, Way, Way]> {
  const { rows } = await database.query<{ address: string }>('SELECT address FROM sandboxes WHERE id = $1', [
    id,
  ]);
  const socketPath = (rows[0]?.address ?? '').replace(/^unix:/, '');
  const prefix = `${SANDBOXES}/${id}/agent-server`;
  return [
    { name: 'direct', http: { socketPath }, prefix: '', socket: `ws+unix:${socketPath}:` },
    { name: 'port', http: at(exposed), prefix: '', socket: exposed.replace('http', 'ws') },
    { name: 'path', http: at(url), prefix, socket: url.replace('http', 'ws') + prefix },
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
  const one = (): Promise<unknown> => ask(way, agent, key, SMALL);
  const requestMs = await medianOf(IN_ROUND, one);
  const requests = await perSecond(AT_ONCE * IN_ROUND, one);
  const began = performance.now();
  const { length } = await ask(way, agent, key, file);
  if (length !== FILE_BYTES) {
    throw new Error(`${way.name}: the file has ${length} bytes`);
  }
  const fileMb = FILE_BYTES / 1e6 / ((performance.now() - began) / 1000);
  agent.destroy();
  const sockets = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => await openSocket(`${way.socket}/sockets/bash-events`, key)),
  );
  const [first] = sockets;
  if (!first) {
    throw new Error('there is no socket');
  }
  const frameMs = await medianOf(IN_ROUND, () => beat(first));
  const frames = await perSecond(AT_ONCE * IN_ROUND, (worker) => beat(sockets[worker] ?? first));
  sockets.forEach((socket) => socket.terminate());
  return { requestMs, frameMs, requests, frames, fileMb };
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

function outcomesOf({ name }: Way, ours: Round[], direct: Round[], isDirect: boolean): Outcome[] {
  const of = (rounds: Round[], kind: keyof Round): number[] => rounds.map((round) => round[kind]);
  print(
    `  ${name}: a request ${spread(of(ours, 'requestMs'), 2)} ms, a frame ${spread(of(ours, 'frameMs'), 2)} ms; ${KINDS.map((kind) => `${spread(of(ours, kind), 0)} ${NAMES[kind]}`).join(', ')} per second`,
  );
  if (isDirect) {
    return [];
  }
  const added = (kind: 'requestMs' | 'frameMs'): number[] =>
    ours.map((round, index) => round[kind] - (direct[index]?.[kind] ?? NaN));
  const latencies = (['requestMs', 'frameMs'] as const).map((kind): Outcome => ({
    what: `${name}: what it adds to a ${kind === 'requestMs' ? 'request' : 'WebSocket frame and its answer'}`,
    target: `<= ${MAX_ADDED_MS} ms`,
    measured: `${spread(added(kind), 2)} ms`,
    reached: median(added(kind)) <= MAX_ADDED_MS,
  }));
  const rates = KINDS.map((kind): Outcome => {
    const ratios = ours.map((round, index) => round[kind] / (direct[index]?.[kind] ?? NaN));
    return {
      what: `${name}: ${NAMES[kind]} per second / direct`,
      target: `>= ${MIN_THROUGHPUT}`,
      measured: spread(ratios, 2),
      reached: median(ratios) >= MIN_THROUGHPUT,
    };
  });
  return [...latencies, ...rates];
}
