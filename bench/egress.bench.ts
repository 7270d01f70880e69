import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Dispatcher, Agent, ProxyAgent, request } from 'undici';
import { newAuthority } from '../packages/egress-proxy/src/new-authority.js';
import { FakeEgressService, KEY } from '../packages/egress-proxy/test/support/fake-egress-service.js';
import { denying, samplePolicy } from '../packages/egress-proxy/test/support/sample-policy.js';
import { namedTlsServer } from '../test/support/named-tls-server.js';
import { startListening, stopServer } from '../test/support/start-listening.js';
import { processorTimeMs, treeMemory } from './support/process-usage.js';
import { atLeast, atMost, median, type Outcome, percentile, print } from './support/report.js';

const MAIN = fileURLToPath(new URL('../dist/egress-proxy/main.js', import.meta.url));
const HOST = 'localhost';
const MB = 1_000_000;
const FILE_MB = 256;
const ROUNDS = 3;
const MIN_CLOSED = 200;
const MIN_OPENED = 80;
const SANDBOXES = 50;
const WAVES = 20;
/** Of each sandbox between two requests. */
const EVERY_MS = 250;
const MAX_P50_MS = 2;
const MAX_P99_MS = 10;
const MAX_SANDBOX_MB = 1;
/** After which what a connection took for its beginning is collected. */
const SETTLE_MS = 3_000;

interface World {
  pid: number;
  /** As programs of a sandbox connect, by the rule for the host; null: without the proxy. */
  connect: (sandbox: string | null, rule?: { methods?: string[] }) => Promise<Dispatcher>;
  url: string;
}

/** TLS is opened where a rule is about methods. */
const OPENED = { methods: ['GET'] };

/** What the egress proxy carries, what it adds to a request, and what a sandbox costs it that does nothing. */
export async function benchEgress(): Promise<Outcome[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-egress-'));
  const [service, hosts] = await Promise.all([FakeEgressService.start(), newAuthority('hosts')]);
  const file = Buffer.alloc(MB, 'x');
  const server = namedTlsServer(hosts, (incoming, response) => {
    if (incoming.url === '/file') {
      let left = FILE_MB;
      const write = (): void => {
        while (left > 0) {
          left -= 1;
          if (!response.write(file)) {
            response.once('drain', write);
            return;
          }
        }
        response.end();
      };
      write();
    } else {
      response.end('ok');
    }
  });
  const port = await startListening(server);
  const trusted = path.join(folder, 'hosts.pem');
  await writeFile(trusted, hosts.certificate);
  const { child, proxyPort } = await startProxy(service.address, trusted);
  const open: Dispatcher[] = [];
  try {
    const world: World = {
      pid: child.pid ?? 0,
      url: `https://${HOST}:${port}`,
      connect: async (sandbox, rule = {}) => {
        const own = await newAuthority(sandbox ?? 'none');
        const tls = { ca: [hosts.certificate, own.certificate] };
        const changes = { networks: ['127.0.0.0/8', '::1/128'], authority: own, maxAgeSeconds: 5 };
        if (sandbox !== null) {
          service.policies.set(
            `credential-of-${sandbox}`,
            samplePolicy({ sandbox, layers: [denying([{ host: HOST, port, ...rule }])], ...changes }),
          );
        }
        const token = `Basic ${Buffer.from(`${sandbox}:credential-of-${sandbox}`).toString('base64')}`;
        const dispatcher =
          sandbox === null
            ? new Agent({ connect: tls, connections: 1 })
            : new ProxyAgent({
                uri: `http://127.0.0.1:${proxyPort}`,
                token,
                requestTls: tls,
                connections: 1,
              });
        open.push(dispatcher);
        return dispatcher;
      },
    };
    return [...(await throughput(world)), ...(await manySandboxes(world))];
  } finally {
    await Promise.all(open.map((each) => each.destroy()));
    child.kill('SIGKILL');
    await Promise.all([stopServer(server), service.stop()]);
    await rm(folder, { recursive: true, force: true });
  }
}

async function startProxy(
  service: URL,
  trusted: string,
): Promise<{ child: ChildProcess; proxyPort: number }> {
  const child = spawn(process.execPath, [MAIN], {
    env: {
      EGRESS_PROXY_LISTEN: '127.0.0.1:0',
      EGRESS_PROXY_SERVICE_URL: service.href,
      NODE_EXTRA_CA_CERTS: trusted,
    },
    stdio: ['pipe', 'inherit', 'pipe'],
  });
  child.stdin.write(`${KEY}\n`);
  for await (const line of createInterface({ input: child.stderr })) {
    const [, port] = /"port":(\d+)/.exec(line) ?? [];
    if (port !== undefined) {
      child.stderr.resume();
      return { child, proxyPort: Number(port) };
    }
  }
  throw new Error('the egress proxy did not start');
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
  const through = await Promise.all(ids.map((id) => connect(id, OPENED)));
  await Promise.all(through.map((each) => get(each, `${url}/`)));
  await delay(SETTLE_MS);
  const each = (memoryOf(pid) - before) / SANDBOXES;
  const direct = await Promise.all(ids.map(() => connect(null)));
  await Promise.all(direct.map((one) => get(one, `${url}/`)));
  const without = await waits(direct, url);
  const used = processorTimeMs(pid) ?? NaN;
  const beside = await waits(through, url);
  const cost = ((processorTimeMs(pid) ?? NaN) - used) / beside.length;
  const more = (share: number): number => percentile(beside, share) - percentile(without, share);
  print(
    `  a request takes ${percentile(without, 0.5).toFixed(2)} ms (p99 ${percentile(without, 0.99).toFixed(1)}), ` +
      `through opened TLS of ${SANDBOXES} sandboxes ${percentile(beside, 0.5).toFixed(2)} (p99 ${percentile(beside, 0.99).toFixed(1)}), ` +
      `and ${cost.toFixed(2)} ms of the proxy's processor`,
  );
  return [
    atMost(`the egress proxy adds to a request of ${SANDBOXES} sandboxes: p50`, more(0.5), MAX_P50_MS, {
      digits: 2,
    }),
    atMost('the same: p99', more(0.99), MAX_P99_MS, { digits: 1 }),
    atMost('a sandbox at rest costs the egress proxy', each, MAX_SANDBOX_MB, { unit: 'MB', digits: 2 }),
  ];
}

/** Of one process: shared pages count as far as they are its own. */
function memoryOf(pid: number): number {
  return treeMemory(pid)?.pss ?? NaN;
}

/** Sorted, in milliseconds: all ask at a pace of their own, none waits for another. */
async function waits(dispatchers: readonly Dispatcher[], url: string): Promise<number[]> {
  const times: number[] = [];
  await Promise.all(
    dispatchers.map(async (dispatcher, index) => {
      await delay((index * EVERY_MS) / dispatchers.length);
      for (let wave = 0; wave < WAVES; wave += 1) {
        const since = performance.now();
        await get(dispatcher, `${url}/`);
        const took = performance.now() - since;
        times.push(took);
        await delay(Math.max(0, EVERY_MS - took));
      }
    }),
  );
  return times.toSorted((a, b) => a - b);
}
