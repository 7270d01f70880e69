import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Client } from 'pg';
import { readProcesses } from '@slipway/common/processes/end-processes.js';
import { newSandboxId, sessionKeyBinding, sessionKeyHash } from '../src/v1/sandboxes/session-key.js';
import { createBenchUsers } from './support/bench-users.js';
import type { WriterReport, WriterRequest } from './support/event-writer.main.js';
import { untilTrue } from './support/fixtures.js';
import { openStream } from './support/http-client.js';
import { processorTimeMs, residentMemoryMb } from './support/process-usage.js';
import { atMost, type Outcome, percentile, print } from './support/report.js';
import { type SandboxService, withSandboxService } from './support/sandbox-service.js';

/** Each has one sandbox. */
const USERS = 40;
const CONVERSATIONS_PER_USER = 5;
const READERS_PER_CONVERSATION = 5;
/** Rate of one conversation. */
const EVENTS_PER_SECOND = 10;
/** Enough for the heap to reach its final size. */
const WARM_UP_MS = 40_000;
const MEASURED_MS = 30_000;
/** Time for the last events to arrive. */
const CATCH_UP_MS = 60_000;
const MAX_P99_MS = 250;
const MAX_GROWTH_MB = 50;
const MARK = 'written at ';
const TIME_DIGITS = 13;

/** A conversation and its owner's key. */
interface Source {
  id: string;
  key: string;
}

/** What readers have received. */
interface Received {
  /** Milliseconds from the writer to the reader, of the events written in the measured time. */
  delays: number[];
  total: number;
}

/** Processor time so far, milliseconds, of everything that shares the machine. */
interface Usage {
  service: number;
  database: number;
  writer: number;
  readers: number;
  sent: number;
}

/** Event streams of many conversations in which something happens all the time. */
export async function benchStreams(): Promise<Outcome[]> {
  return await withSandboxService({}, async (service) => {
    const writer = new EventWriter();
    try {
      return await measure(service, writer, await prepare(service, writer));
    } finally {
      writer.close();
    }
  });
}

/** The process that stands in for the agent servers. */
class EventWriter {
  readonly #child: ChildProcess;

  constructor() {
    const runner = fileURLToPath(new URL('../scripts/run-typescript.mjs', import.meta.url));
    this.#child = fork(runner, [fileURLToPath(new URL('support/event-writer.main.ts', import.meta.url))]);
  }

  async ask(wanted: WriterRequest): Promise<WriterReport> {
    this.#child.send(wanted);
    const [report] = (await once(this.#child, 'message')) as [WriterReport];
    return report;
  }

  close(): void {
    this.#child.disconnect();
  }
}

async function measure(
  service: SandboxService,
  writer: EventWriter,
  sources: readonly Source[],
): Promise<Outcome[]> {
  const received: Received = { delays: [], total: 0 };
  const span = { from: Infinity, to: Infinity };
  const readers = await Promise.all(
    sources.flatMap((source) =>
      Array.from({ length: READERS_PER_CONVERSATION }, () => read(service.url, source, span, received)),
    ),
  );
  const wanted = sources.length * EVENTS_PER_SECOND;
  await writer.ask({ kind: 'write', eventsPerSecond: wanted });
  await delay(WARM_UP_MS);
  const memory = residentMemoryMb(service.pid);
  const before = await usage(service, writer);
  span.from = Date.now();
  await delay(MEASURED_MS);
  span.to = Date.now();
  const after = await usage(service, writer);
  const growth = residentMemoryMb(service.pid) - memory;
  const { sent: total } = await writer.ask({ kind: 'stop' });
  const expected = total * READERS_PER_CONVERSATION;
  for (let waited = 0; received.total < expected && waited < CATCH_UP_MS; waited += 100) {
    await delay(100);
  }
  readers.forEach((reader) => reader.destroy());
  const sorted = received.delays.toSorted((a, b) => a - b);
  const at = (share: number): string => percentile(sorted, share).toFixed(0);
  const cores = (part: keyof Usage): string => ((after[part] - before[part]) / MEASURED_MS).toFixed(2);
  const rate = ((after.sent - before.sent) / MEASURED_MS) * 1000;
  const load = `${readers.length} readers of ${USERS * CONVERSATIONS_PER_USER} conversations`;
  print(
    `  ${load}: ${rate.toFixed(0)} events/s, delays p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, p99.9 ${at(0.999)} ms, longest ${at(1)} ms`,
  );
  print(
    `  processors: service ${cores('service')}, PostgreSQL ${cores('database')}, writer ${cores('writer')}, readers ${cores('readers')}; the service per event ${(((after.service - before.service) / (after.sent - before.sent)) * 1000).toFixed(0)} microseconds, ${memory.toFixed(0)} MB resident`,
  );
  return [
    {
      what: `${load}, ${EVENTS_PER_SECOND} events per second in each: delay, p99`,
      target: `<= ${MAX_P99_MS} ms`,
      measured: `${at(0.99)} ms (${rate.toFixed(0)} of ${wanted} events/s written)`,
      reached: percentile(sorted, 0.99) <= MAX_P99_MS && rate >= 0.95 * wanted,
    },
    {
      what: 'events that each reader received',
      target: 'all, once',
      measured: `${received.total} of ${expected}`,
      reached: received.total === expected,
    },
    atMost('growth of the resident memory meanwhile', growth, MAX_GROWTH_MB, { unit: 'MB' }),
  ];
}

async function usage({ pid, database }: SandboxService, writer: EventWriter): Promise<Usage> {
  const { user, system } = process.cpuUsage();
  const { sent, processorMs } = await writer.ask({ kind: 'report' });
  return {
    service: processorTimeMs(pid) ?? NaN,
    database: await databaseTimeMs(database),
    writer: processorMs,
    readers: (user + system) / 1000,
    sent,
  };
}

/** Sums up all processes of the server; those that have ended meanwhile are missing. */
async function databaseTimeMs(database: Client): Promise<number> {
  const { rows } = await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const processes = readProcesses() ?? [];
  const postmaster = processes.find(({ pid }) => pid === rows[0]?.pid)?.parent;
  return processes
    .filter(({ pid, parent }) => pid === postmaster || parent === postmaster)
    .reduce((sum, { pid }) => sum + (processorTimeMs(pid) ?? 0), 0);
}

/** Writes the rows of running sandboxes whose agent servers are the writer's, and opens their conversations. */
async function prepare(
  { database, databaseUrl, cipher }: SandboxService,
  writer: EventWriter,
): Promise<Source[]> {
  const keys = await createBenchUsers(databaseUrl, USERS, 'writer');
  const conversations = keys.map(() => Array.from({ length: CONVERSATIONS_PER_USER }, () => randomUUID()));
  const { servers } = await writer.ask({ kind: 'open', servers: conversations });
  for (const [index, { address, key }] of servers.entries()) {
    const id = newSandboxId();
    await database.query(
      `WITH sandbox AS (
         INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, address,
           generation, last_activity_at)
         SELECT $1, id, 'slipway', 'RUNNING', 'process', 'absent-host', $2, $3, $4, 1, now()
         FROM users WHERE email = $5
         RETURNING id, user_id)
       INSERT INTO followed_conversations (id, user_id, sandbox_id)
       SELECT c.id, sandbox.user_id, sandbox.id FROM sandbox, unnest($6::uuid[]) AS c (id)`,
      [
        id,
        cipher.encrypt(key, sessionKeyBinding(id)),
        sessionKeyHash(key),
        address,
        `writer-${index}@example.com`,
        conversations[index],
      ],
    );
  }
  const unfollowed = 'SELECT FROM followed_conversations WHERE follower IS NULL';
  await untilTrue(
    async () => (await database.query(unfollowed)).rowCount === 0,
    'followers of all conversations',
  );
  return conversations.flatMap((ids, index) => ids.map((id) => ({ id, key: keys[index] ?? '' })));
}

/** Reads without parsing more than the time in each event: the readers share the machine with what is measured. */
async function read(
  url: string,
  { id, key }: Source,
  span: { from: number; to: number },
  received: Received,
): Promise<IncomingMessage> {
  const response = await openStream(`${url}/api/v1/conversation/${id}/events/stream?from=now`, key);
  response.setEncoding('latin1');
  let rest = '';
  response.on('data', (chunk: string) => {
    const now = Date.now();
    const text = rest + chunk;
    let taken = 0;
    for (let found = text.indexOf(MARK); found !== -1; found = text.indexOf(MARK, taken)) {
      const end = found + MARK.length + TIME_DIGITS;
      if (end > text.length) {
        break;
      }
      taken = end;
      received.total += 1;
      const sent = Number(text.slice(found + MARK.length, end));
      if (sent >= span.from && sent < span.to) {
        received.delays.push(now - sent);
      }
    }
    rest = text.slice(Math.max(taken, text.length - MARK.length - TIME_DIGITS));
  });
  return response;
}
