import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Dispatcher, Agent, ProxyAgent, request } from 'undici';
import { newAuthority } from '../packages/egress-proxy/src/new-authority.js';
import { KEY } from '../packages/egress-proxy/test/support/fake-egress-service.js';
import { denying, samplePolicy } from '../packages/egress-proxy/test/support/sample-policy.js';
import { collectedHeap } from './support/collected-heap.js';
import type { EgressHost, KnownSandbox } from './support/egress-host.main.js';
import { freePort, withFolder } from './support/fixtures.js';
import { processorTimeMs, treeMemory } from './support/process-usage.js';
import { atLeast, atMost, median, type Outcome, percentile, print } from './support/report.js';

const MAIN = fileURLToPath(new URL('../dist/egress-proxy/main.js', import.meta.url));
const RUNNER = fileURLToPath(new URL('../scripts/run-typescript.mjs', import.meta.url));
const BEYOND = fileURLToPath(new URL('support/egress-host.main.ts', import.meta.url));
const HOST = 'localhost';
const MB = 1_000_000;
const ROUNDS = 3;
const MIN_CLOSED = 200;
const MIN_OPENED = 80;
const SANDBOXES = 50;
/** Of each sandbox between two requests. */
const EVERY_MS = 250;
/** Six times: one way is idle for 3 s at most, as connections end after 4. */
const WAVES = 6;
const QUARTETS = 8;
const WARM_UP_QUARTETS = 2;
const MAX_P50_MS = 2;
const MAX_P99_MS = 10;
const MAX_SANDBOX_MB = 1;
const REQUESTS = 10_000;
const REQUESTS_AT_ONCE = 10;
const MAX_LEFT_MB = 1;
/** After which what a connection took for its beginning is collected. */
const SETTLE_MS = 3_000;

/** The proxy as a process. */
interface ProxyProcess {
  pid: number;
  address: string;
  inspectorPort: number;
}

interface World extends Pick<ProxyProcess, 'pid' | 'inspectorPort'> {
  /** As programs of a sandbox connect, by the rule for the host; null: without the proxy. */
  connect: (sandbox: string | null, rule?: { methods?: string[] }) => Promise<Dispatcher>;
  url: string;
}

/** TLS is opened where a rule is about methods. */
const OPENED = { methods: ['GET'] };

/**
 * What the egress proxy carries, what it adds to a request, and what a sandbox costs it that does nothing. Sandboxes, the proxy, and the
 * host with the service are three processes. BENCH_PROFILE names a folder for the proxy's CPU profile.
 */
export async function benchEgress(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const beyond = fork(RUNNER, [BEYOND]);
    try {
      const [host] = (await once(beyond, 'message')) as [EgressHost];
      const trusted = path.join(folder, 'hosts.pem');
      await writeFile(trusted, host.certificate);
      return await withProxy(host.service, trusted, async (proxy) => await measure(host, beyond, proxy));
    } finally {
      beyond.disconnect();
    }
  });
}

async function measure(
  { port, certificate }: EgressHost,
  beyond: ChildProcess,
  { pid, address, inspectorPort }: ProxyProcess,
): Promise<Outcome[]> {
  const open: Dispatcher[] = [];
  const world: World = {
    pid,
    inspectorPort,
    url: `https://${HOST}:${port}`,
    connect: async (sandbox, rule = {}) => {
      const own = await newAuthority(sandbox ?? 'none');
      const requestTls = { ca: [certificate, own.certificate] };
      const credential = `credential-of-${sandbox}`;
      if (sandbox !== null) {
        const changes = { networks: ['127.0.0.0/8', '::1/128'], authority: own, maxAgeSeconds: 5 };
        const layers = [denying([{ host: HOST, port, ...rule }])];
        const known: KnownSandbox = { credential, policy: samplePolicy({ sandbox, layers, ...changes }) };
        beyond.send(known);
        await once(beyond, 'message');
      }
      const token = `Basic ${Buffer.from(`${sandbox}:${credential}`).toString('base64')}`;
      const dispatcher =
        sandbox === null
          ? new Agent({ connect: requestTls, connections: 1 })
          : new ProxyAgent({ uri: address, token, requestTls, connections: 1 });
      open.push(dispatcher);
      return dispatcher;
    },
  };
  try {
    return [...(await throughput(world)), ...(await manySandboxes(world)), await leftBehind(world)];
  } finally {
    await Promise.all(open.map((each) => each.destroy()));
  }
}

/** Runs `work` with a proxy, which trusts the certificates in a file. */
async function withProxy<T>(
  service: string,
  trusted: string,
  work: (proxy: ProxyProcess) => Promise<T>,
): Promise<T> {
  const profiles = process.env['BENCH_PROFILE'];
  const nodeArgs = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const inspectorPort = await freePort();
  const child = spawn(process.execPath, [`--inspect=127.0.0.1:${inspectorPort}`, ...nodeArgs, MAIN], {
    env: {
      EGRESS_PROXY_LISTEN: '127.0.0.1:0',
      EGRESS_PROXY_SERVICE_URL: service,
      NODE_EXTRA_CA_CERTS: trusted,
    },
    stdio: ['pipe', 'inherit', 'pipe'],
  });
  const ended = once(child, 'exit');
  child.stdin.write(`${KEY}\n`);
  try {
    for await (const line of createInterface({ input: child.stderr })) {
      const [, port] = /"port":(\d+)/.exec(line) ?? [];
      if (port !== undefined) {
        child.stderr.resume();
        return await work({ pid: child.pid ?? 0, address: `http://127.0.0.1:${port}`, inspectorPort });
      }
    }
    throw new Error('the egress proxy did not start');
  } finally {
    child.stdin.end();
    await ended;
  }
}

async function get(dispatcher: Dispatcher, url: string): Promise<number> {
  const { body, statusCode } = await request(url, { dispatcher });
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
  }
  if (statusCode !== 200) {
    throw new Error(`${url} answered ${statusCode}`);
  }
  return bytes;
}

/** Megabytes for each second of the proxy's processor time: what one core carries, however busy the machine is. */
async function throughput({ connect, pid, url }: World): Promise<Outcome[]> {
  const ways = [
    { what: 'passed through', min: MIN_CLOSED, dispatcher: await connect('closed') },
    { what: 'in opened TLS', min: MIN_OPENED, dispatcher: await connect('opened', OPENED) },
  ];
  const outcomes: Outcome[] = [];
  for (const { what, min, dispatcher } of ways) {
    await get(dispatcher, `${url}/`);
    const figures: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = processorTimeMs(pid) ?? NaN;
      const bytes = await get(dispatcher, `${url}/file`);
      figures.push(bytes / MB / (((processorTimeMs(pid) ?? NaN) - before) / 1_000));
    }
    print(`  ${median(figures).toFixed(0)} MB for a second of processor time, ${what}`);
    outcomes.push(atLeast(`the egress proxy carries ${what}, for each core`, figures, min, { unit: 'MB/s' }));
  }
  return outcomes;
}

async function manySandboxes({ connect, pid, url }: World): Promise<Outcome[]> {
  const ids = Array.from({ length: SANDBOXES }, (_none, index) => `many-${index}`);
  await delay(SETTLE_MS);
  const before = memoryOf(pid);
  const through: Dispatcher[] = [];
  for (const id of ids) {
    through.push(await connect(id, OPENED));
  }
  await Promise.all(through.map((each) => get(each, `${url}/`)));
  await delay(SETTLE_MS);
  const each = (memoryOf(pid) - before) / SANDBOXES;
  const direct = await Promise.all(ids.map(() => connect(null)));
  return [
    ...(await inTurns(pid, { direct, through }, url)),
    atMost('a sandbox at rest costs the egress proxy', each, MAX_SANDBOX_MB, { unit: 'MB', digits: 2 }),
  ];
}

/** Direct, through, through, direct: what the machine does otherwise is in both. */
async function inTurns(
  pid: number,
  { direct, through }: Record<'direct' | 'through', readonly Dispatcher[]>,
  url: string,
): Promise<Outcome[]> {
  const all = { direct: [] as number[], through: [] as number[] };
  const more = { p50: [] as number[], p99: [] as number[] };
  let cost = 0;
  for (let quartet = 1 - WARM_UP_QUARTETS; quartet <= QUARTETS; quartet += 1) {
    const without = await waits(direct, url);
    const used = processorTimeMs(pid) ?? NaN;
    const beside = [...(await waits(through, url)), ...(await waits(through, url))];
    const took = (processorTimeMs(pid) ?? NaN) - used;
    without.push(...(await waits(direct, url)));
    if (quartet > 0) {
      more.p50.push(at(beside, 0.5) - at(without, 0.5));
      more.p99.push(at(beside, 0.99) - at(without, 0.99));
      all.direct.push(...without);
      all.through.push(...beside);
      cost += took;
    }
  }
  print(
    `  of ${all.through.length} requests each a direct one takes ${shown(all.direct)}, one through opened TLS of ${SANDBOXES} sandboxes ` +
      `${shown(all.through)}, and ${(cost / all.through.length).toFixed(2)} ms of the proxy's processor`,
  );
  return [
    atMost(`the egress proxy adds to a request of ${SANDBOXES} sandboxes: p50`, more.p50, MAX_P50_MS, {
      digits: 2,
    }),
    atMost('the same: p99', more.p99, MAX_P99_MS, { digits: 1 }),
  ];
}

/** What so many requests leave after as many before them. */
async function leftBehind({ connect, inspectorPort, url }: World): Promise<Outcome> {
  const through: Dispatcher[] = [];
  for (let index = 0; index < REQUESTS_AT_ONCE; index += 1) {
    through.push(await connect(`left-${index}`, OPENED));
  }
  const heapAfter = async (): Promise<number> => {
    await Promise.all(
      through.map(async (each) => {
        for (let count = 0; count < REQUESTS / REQUESTS_AT_ONCE; count += 1) {
          await get(each, `${url}/`);
        }
      }),
    );
    await delay(SETTLE_MS);
    return (await collectedHeap(inspectorPort)) / MB;
  };
  const heaps: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    heaps.push(await heapAfter());
  }
  print(
    `  ${heaps.map((heap) => heap.toFixed(1)).join(', ')} MB on its heap, each time after ten thousand requests`,
  );
  const left = heaps.slice(1).map((heap, index) => heap - (heaps[index] ?? NaN));
  return atMost('ten thousand requests leave on the heap of the egress proxy', left, MAX_LEFT_MB, {
    unit: 'MB',
    digits: 2,
  });
}

function shown(times: readonly number[]): string {
  return `${at(times, 0.5).toFixed(2)} ms (p99 ${at(times, 0.99).toFixed(1)})`;
}

function at(times: readonly number[], share: number): number {
  return percentile(
    times.toSorted((a, b) => a - b),
    share,
  );
}

/** Of one process: shared pages count as far as they are its own. */
function memoryOf(pid: number): number {
  return treeMemory(pid)?.pss ?? NaN;
}

/** Milliseconds from the moment when each is due, at a pace of its own, to the end of its answer: none waits for another's. */
async function waits(dispatchers: readonly Dispatcher[], url: string): Promise<number[]> {
  const beginning = performance.now();
  const planned = dispatchers.flatMap((dispatcher, index) =>
    Array.from({ length: WAVES }, async (_none, wave) => {
      const due = beginning + (wave + index / dispatchers.length) * EVERY_MS;
      await delay(Math.ceil(Math.max(0, due - performance.now())));
      await get(dispatcher, `${url}/`);
      return performance.now() - due;
    }),
  );
  return await Promise.all(planned);
}
