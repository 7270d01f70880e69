import type { PgBoss } from 'pg-boss';
import type { DataSource } from 'typeorm';
import { HEARTBEAT_SECONDS } from './job-loop.js';
import type { JobQueue } from './job-queue.js';

/** Enough for fetching, settling and heartbeats, which are short; jobs are sent on the connection of their sender. */
const POOL_SIZE = 2;
const SUPERVISE_SECONDS = 5;
/** Longer than any job may take; what dies is noticed by its heartbeat. */
const EXPIRE_SECONDS = 4 * 3600;
const KEEP_DONE_SECONDS = 3600;
/** As long as the service's own statements wait for a server that hangs. */
const ANSWER_TIMEOUT_MS = 20_000;

/**
 * Opens pg-boss on the service's database, with a small pool of its own.
 *
 * @param onTrouble told what fails in the background
 */
export async function openJobStore(
  { options }: DataSource,
  onTrouble: (error: Error) => void,
): Promise<PgBoss> {
  if (options.type !== 'postgres' || options.url === undefined) {
    throw new Error('jobs need a PostgreSQL with an address');
  }
  // The library takes longer to load than most of the service.
  const { PgBoss: Store } = await import('pg-boss');
  const store = new Store({
    connectionString: withTimeout(options.url),
    application_name: 'slipway jobs',
    max: POOL_SIZE,
    connectionTimeoutMillis: 5_000,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    reindex: false,
    monitorVacuum: false,
  });
  store.on('error', onTrouble);
  try {
    return await store.start();
  } catch (error) {
    await store.stop({ graceful: false });
    throw error;
  }
}

/** The library has no option for it, but passes the address on to the driver, which has one. */
function withTimeout(address: string): string {
  if (!URL.canParse(address)) {
    return address;
  }
  const url = new URL(address);
  if (!url.searchParams.has('query_timeout')) {
    url.searchParams.set('query_timeout', String(ANSWER_TIMEOUT_MS));
  }
  return url.href;
}

/** Makes a queue, and the one of its dead letters, unless they are there. */
export async function createQueue(store: PgBoss, queue: JobQueue): Promise<void> {
  const common = { expireInSeconds: EXPIRE_SECONDS, deleteAfterSeconds: KEEP_DONE_SECONDS };
  if (queue.deadLetter !== null) {
    await store.createQueue(queue.deadLetter, common);
  }
  await store.createQueue(queue.name, {
    ...common,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    retryLimit: queue.retryLimit,
    retryDelay: queue.retryDelaySeconds,
    retryBackoff: true,
    ...(queue.deadLetter !== null && { deadLetter: queue.deadLetter }),
  });
}
