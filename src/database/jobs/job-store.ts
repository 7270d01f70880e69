import type { Db, PgBoss } from 'pg-boss';
import type { DataSource, EntityManager } from 'typeorm';
import { HEARTBEAT_SECONDS, type JobQueue } from './job-queue.worker.js';

/** Fetches, heartbeats and results are short; jobs are sent on the connection of their sender. */
const POOL_SIZE = 2;
const SUPERVISE_SECONDS = 5;
/** Longer than any job may take. The heartbeat finds workers that died. */
const EXPIRE_SECONDS = 4 * 3600;
const KEEP_FINISHED_SECONDS = 3600;
/** The same bound as for the service's own statements on a server that hangs. */
const QUERY_TIMEOUT_MS = 20_000;

/**
 * Opens pg-boss on the service's database, with a small pool of its own.
 *
 * @param onError receives what fails in the background
 */
export async function openJobStore(
  { options }: DataSource,
  onError: (error: Error) => void,
): Promise<PgBoss> {
  if (options.type !== 'postgres' || options.url === undefined) {
    throw new Error('durable jobs need PostgreSQL and its URL');
  }
  // It takes longer to load than most of the service.
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
  store.on('error', onError);
  try {
    return await store.start();
  } catch (error) {
    await store.stop({ graceful: false });
    throw error;
  }
}

/** Whether any queue has ever had a job, without loading pg-boss. */
export async function hasJobs(dataSource: DataSource): Promise<boolean> {
  const [row] = await dataSource.query<{ found: boolean }[]>(
    'SELECT EXISTS (SELECT FROM pgboss.job) AS found',
  );
  return row?.found === true;
}

/** What is in a queue. */
export interface QueueCounts {
  name: string;
  waiting: number;
  active: number;
  failed: number;
  /** 0 when no job is due. */
  oldestWaitSeconds: number;
}

/** A retry is due when its pause is over. pg-boss keeps failed jobs for an hour. */
const COUNT_JOBS = `
  SELECT name, count(*) FILTER (WHERE state IN ('created', 'retry'))::int AS waiting,
    count(*) FILTER (WHERE state = 'active')::int AS active, count(*) FILTER (WHERE state = 'failed')::int AS failed,
    greatest(extract(epoch FROM now() - min(start_after) FILTER (WHERE state IN ('created', 'retry'))), 0)::float8
      AS "oldestWaitSeconds"
  FROM pgboss.job WHERE state IN ('created', 'retry', 'active', 'failed')
  GROUP BY name`;

/** Queues without jobs are left out. Needs no pg-boss either. */
export async function countJobs(dataSource: DataSource): Promise<QueueCounts[]> {
  return dataSource.query<QueueCounts[]>(COUNT_JOBS);
}

/** pg-boss has no option for it, but hands the URL to the driver, which has one. */
function withTimeout(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) {
    return databaseUrl;
  }
  const url = new URL(databaseUrl);
  if (!url.searchParams.has('query_timeout')) {
    url.searchParams.set('query_timeout', String(QUERY_TIMEOUT_MS));
  }
  return url.href;
}

/** Creates a queue and its dead-letter queue, unless they exist. */
export async function createQueue(store: PgBoss, queue: JobQueue): Promise<void> {
  const common = { expireInSeconds: EXPIRE_SECONDS, deleteAfterSeconds: KEEP_FINISHED_SECONDS };
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

/** Lets pg-boss write inside one of our transactions. */
export function transactionDatabase(manager: EntityManager): Db {
  return {
    executeSql: async (text, values) => {
      if (!manager.queryRunner?.isTransactionActive) {
        throw new Error('a job is sent inside of a transaction');
      }
      const { records } = await manager.queryRunner.query(text, values, true);
      return { rows: records };
    },
  };
}
