import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonText } from '../src/common/json-access.js';
import { requireSandboxAddress, type SandboxAddress } from '../src/v1/agent-servers/sandbox-address.js';
import { createBenchUsers } from './support/bench-users.js';
import { postStart, type ReadyConversation, untilReady } from './support/conversation-starts.js';
import { HttpClient } from './support/http-client.js';
import { processorTimeMs, residentMemoryMb } from './support/process-usage.js';
import { type Outcome, print } from './support/report.js';
import { type SandboxService, withSandboxService } from './support/sandbox-service.js';

/** Each has one sandbox. */
const USERS = 40;
const CONVERSATIONS_PER_USER = 5;
const READERS_PER_CONVERSATION = 5;
/** Of one conversation. */
const EVENTS_PER_SECOND = 10;
const WARM_UP_MS = 10_000;
const MEASURED_MS = 30_000;
/** For the last events to arrive. */
const CATCH_UP_MS = 30_000;
const MAX_P99_MS = 250;
const MAX_GROWTH_MB = 50;
const STARTS_AT_ONCE = 4;
const SETTINGS = { llm_model: 'openai/none', llm_base_url: 'http://127.0.0.1:1', llm_api_key: 'sk-none' };

/** A conversation, its readers' key, and where its agent server is. */
interface Source {
  conversation: ReadyConversation;
  key: string;
  address: SandboxAddress;
}

/** What readers have received. */
interface Received {
  /** Of the events that were sent in the measured time: from the request of the writer to the reader, milliseconds. */
  delays: number[];
  total: number;
}

/** Event streams of many conversations whose agent servers write all the time; nobody calls a model. */
export async function benchStreams(): Promise<Outcome[]> {
  return await withSandboxService({ MAX_RUNNING_SANDBOXES: `${USERS}` }, async (service) => {
    const keys = await createBenchUsers(service.databaseUrl, USERS, 'writer');
    try {
      return await measure(service, await prepare(service, keys));
    } finally {
      await Promise.all(keys.map((key) => removeOwnSandboxes(service.url, key)));
    }
  });
}

async function measure(service: SandboxService, sources: readonly Source[]): Promise<Outcome[]> {
  const received: Received = { delays: [], total: 0 };
  const span = { from: Infinity, to: Infinity };
  const readers = await Promise.all(
    sources.flatMap((source) =>
      Array.from({ length: READERS_PER_CONVERSATION }, () => read(service.url, source, span, received)),
    ),
  );
  const { counts, stop } = write(sources);
  await delay(WARM_UP_MS);
  const memory = residentMemoryMb(service.pid);
  const processorTime = processorTimeMs(service.pid) ?? NaN;
  const sentBefore = counts.sent;
  span.from = Date.now();
  await delay(MEASURED_MS);
  span.to = Date.now();
  const sent = counts.sent - sentBefore;
  const used = (processorTimeMs(service.pid) ?? NaN) - processorTime;
  const growth = residentMemoryMb(service.pid) - memory;
  await stop();
  const expected = counts.sent * READERS_PER_CONVERSATION;
  for (let waited = 0; received.total < expected && waited < CATCH_UP_MS; waited += 100) {
    await delay(100);
  }
  readers.forEach((reader) => reader.destroy());
  const sorted = Float64Array.from(received.delays).toSorted();
  const at = (share: number): string =>
    `${(sorted[Math.floor((sorted.length - 1) * share)] ?? NaN).toFixed(0)} ms`;
  const p99 = sorted[Math.floor((sorted.length - 1) * 0.99)] ?? NaN;
  const load = `${readers.length} readers of ${sources.length} conversations`;
  print(
    `  ${load}: written ${(sent / (MEASURED_MS / 1000)).toFixed(0)} events/s (slowest write ${counts.slowestMs.toFixed(0)} ms), delays p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, longest ${at(1)}`,
  );
  print(
    `  the service: ${(used / MEASURED_MS).toFixed(2)} cores, ${memory.toFixed(0)} MB resident and ${growth.toFixed(0)} MB more at the end; received ${received.total} of ${expected} events`,
  );
  return [
    {
      what: `${load}, ${EVENTS_PER_SECOND} events per second in each: delay, p99`,
      target: `<= ${MAX_P99_MS} ms`,
      measured: `${at(0.99)} (${(sent / (MEASURED_MS / 1000)).toFixed(0)} of ${sources.length * EVENTS_PER_SECOND} events/s written)`,
      reached: p99 <= MAX_P99_MS && sent >= 0.95 * sources.length * EVENTS_PER_SECOND * (MEASURED_MS / 1000),
    },
    {
      what: 'events that each reader received',
      target: 'all, once',
      measured: `${received.total} of ${expected}`,
      reached: received.total === expected,
    },
    {
      what: 'growth of the resident memory meanwhile',
      target: `<= ${MAX_GROWTH_MB} MB`,
      measured: `${growth.toFixed(0)} MB`,
      reached: growth <= MAX_GROWTH_MB,
    },
  ];
}

async function prepare({ url, database }: SandboxService, keys: readonly string[]): Promise<Source[]> {
  const sources: Source[] = [];
  const waiting = [...keys];
  const prepareNext = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      const client = new HttpClient(url, key);
      await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(SETTINGS) });
      const conversations = await startConversations(client);
      const { rows } = await database.query<{ address: string }>(
        'SELECT address FROM sandboxes WHERE id = $1',
        [conversations[0]?.sandboxId],
      );
      const address = requireSandboxAddress(rows[0]?.address ?? '');
      sources.push(...conversations.map((conversation) => ({ conversation, key: key ?? '', address })));
      client.close();
    }
  };
  await Promise.all(Array.from({ length: STARTS_AT_ONCE }, prepareNext));
  return sources;
}

async function removeOwnSandboxes(url: string, key: string): Promise<void> {
  const client = new HttpClient(url, key);
  const page = await client.json({ method: 'GET', path: '/api/v1/sandboxes/search?limit=100' });
  for (const sandbox of jsonList(page, 'items')) {
    await client.expectOk({ method: 'DELETE', path: `/api/v1/sandboxes/${jsonText(sandbox, 'id')}` });
  }
  client.close();
}

async function startConversations(client: HttpClient): Promise<ReadyConversation[]> {
  const first = await untilReady(client, [(await postStart(client, null)).taskId]);
  const others = await Promise.all(
    Array.from({ length: CONVERSATIONS_PER_USER - 1 }, () => postStart(client, null, first[0]?.sandboxId)),
  );
  return [
    ...first,
    ...(await untilReady(
      client,
      others.map(({ taskId }) => taskId),
    )),
  ];
}

/** Reads without parsing more than the time in each event: the readers share the machine with what is measured. */
async function read(
  url: string,
  { conversation, key }: Source,
  span: { from: number; to: number },
  received: Received,
): Promise<IncomingMessage> {
  const outgoing = request(`${url}/api/v1/conversation/${conversation.id}/events/stream?from=now`, {
    headers: { 'x-session-api-key': key },
    agent: false,
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) {
    throw new Error(`the stream of a conversation responded ${response.statusCode}`);
  }
  response.setEncoding('utf8');
  response.on('error', () => undefined);
  let rest = '';
  response.on('data', (chunk: string) => {
    const now = Date.now();
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, sent] = /written at (\d+)/.exec(block) ?? [];
      if (sent !== undefined) {
        received.total += 1;
        if (Number(sent) >= span.from && Number(sent) < span.to) {
          received.delays.push(now - Number(sent));
        }
      }
    }
  });
  return response;
}

/** Writes into each conversation at its pace; a write that is due while the one before is under way is left out. */
function write(sources: readonly Source[]): {
  counts: { sent: number; slowestMs: number };
  stop: () => Promise<void>;
} {
  const counts = { sent: 0, slowestMs: 0 };
  const agents = new Map<string, Agent>();
  const open = new Map<Source, Promise<void>>();
  const period = 1000 / EVENTS_PER_SECOND;
  const timers: NodeJS.Timeout[] = [];
  sources.forEach((source, index) => {
    const { sandboxId } = source.conversation;
    const agent = agents.get(sandboxId) ?? new Agent({ keepAlive: true });
    agents.set(sandboxId, agent);
    const begin = setTimeout(
      () => {
        timers.push(
          setInterval(() => {
            if (!open.has(source)) {
              open.set(
                source,
                writeOne(source, agent, counts).finally(() => open.delete(source)),
              );
            }
          }, period),
        );
      },
      (period * index) / sources.length,
    );
    timers.push(begin);
  });
  return {
    counts,
    stop: async () => {
      timers.forEach((timer) => clearInterval(timer));
      await Promise.all(open.values());
      agents.forEach((agent) => agent.destroy());
    },
  };
}

async function writeOne(
  { conversation, address }: Source,
  agent: Agent,
  counts: { sent: number; slowestMs: number },
): Promise<void> {
  const startedAt = Date.now();
  const body = JSON.stringify({
    role: 'user',
    content: [{ type: 'text', text: `written at ${startedAt}` }],
    run: false,
  });
  const to =
    address.kind === 'unix'
      ? { socketPath: address.socketPath }
      : { host: new URL(address.kind === 'tcp' ? address.origin : '').hostname };
  const outgoing = request({
    ...to,
    ...(address.kind === 'tcp' && { port: new URL(address.origin).port }),
    agent,
    method: 'POST',
    path: `/api/conversations/${conversation.id}/events`,
    headers: {
      'x-session-api-key': conversation.sessionKey,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) {
    throw new Error(`an agent server responded ${response.statusCode}`);
  }
  counts.sent += 1;
  counts.slowestMs = Math.max(counts.slowestMs, Date.now() - startedAt);
}
