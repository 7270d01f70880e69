import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  Module,
} from '@nestjs/common';
import type { Db, JobWithMetadata, PgBoss } from 'pg-boss';
import { DataSource, type EntityManager } from 'typeorm';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { jsonNumber } from '@slipway/common/json-access.js';
import { isDatabaseAway } from '../../common/errors/database-failure.js';
import { DomainError } from '../../common/errors/domain-error.js';
import {
  DatabaseNotifications,
  DatabaseNotificationsModule,
} from '../notifications/database-notifications.js';
import {
  type HandBack,
  HEARTBEAT_SECONDS,
  type JobHandler,
  type JobQueue,
  JobQueueWorker,
  withTraceparent,
} from './job-queue.worker.js';

const CHANNEL = 'jobs';
/** For a process without workers. */
const SEARCH_MS = 2_000;

export interface JobBacklog extends Omit<QueueCounts, 'name'> {
  kind: string;
}

/** Jobs that are sent in the caller's transaction. pg-boss takes a tenth of the memory, so it is loaded late. */
@Injectable()
export class DurableJobs implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  private readonly logger = new Logger(DurableJobs.name);
  private readonly handlers = new Map<string, { queue: JobQueue; handler: JobHandler }>();
  private readonly workers = new Map<string, JobQueueWorker>();
  private readonly search = new RepeatedWork(
    SEARCH_MS,
    () => this.startWorkersForJobs(),
    (error) => this.reportStartFailure(error),
  );
  private opening: Promise<PgBoss> | null = null;
  private lastFailure: unknown = null;
  private stopping = false;
  private stopListening: (() => void) | null = null;

  constructor(
    private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Called before the application has started. */
  handle(queue: JobQueue, handler: JobHandler): void {
    this.handlers.set(queue.name, { queue, handler });
  }

  /** The job exists once the transaction is committed. @throws DomainError unavailable without its tables */
  async send(manager: EntityManager, queue: string, data: object): Promise<void> {
    const boss = await this.open();
    await boss.send(queue, withTraceparent(data), { db: transactionDatabase(manager) });
    await this.notifications.publish(manager, CHANNEL, queue);
  }

  /** Removes a job that no worker has taken. */
  async withdraw(queue: string, data: object): Promise<void> {
    await this.dataSource.query(WITHDRAW, [queue, data]);
  }

  onApplicationBootstrap(): void {
    if (this.handlers.size === 0) {
      return;
    }
    this.stopListening = this.notifications.listen(
      CHANNEL,
      (queue) => this.onSent(queue),
      () => {
        void this.search.now();
        this.workers.forEach((worker) => worker.wake());
      },
    );
    this.search.start();
  }

  /** Runs before requests in flight end, so that the jobs they still send are left to other processes. */
  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    this.stopListening?.();
    void this.search.stop();
    await Promise.all([...this.workers.values()].map((worker) => worker.stop()));
  }

  async onApplicationShutdown(): Promise<void> {
    // A store that is still being opened has to be closed too.
    const boss = await this.opening?.catch(() => null);
    await boss?.stop({ graceful: false });
  }

  /** Opens the store and creates the queue, so that a transaction that sends a job need not wait for either. */
  async prepare(queue: JobQueue): Promise<void> {
    const boss = await this.open();
    if (!this.handlers.has(queue.name)) {
      // The queue belongs to another host, which may be down.
      await createQueue(boss, queue);
    }
  }

  /** Checks for jobs of dead workers now instead of within seconds. */
  async supervise(): Promise<void> {
    const boss = await this.open();
    await boss.supervise();
  }

  get failure(): unknown {
    return this.lastFailure;
  }

  /** Job counts of all hosts, by the kinds that this process knows. */
  async backlog(): Promise<JobBacklog[]> {
    const kinds = [...new Set([...this.handlers.values()].map(({ queue }) => queue.kind))];
    const found = await countJobs(this.dataSource);
    return kinds.map((kind) => {
      const ofKind = found.filter(({ name }) => kindOf(name, kinds) === kind);
      const sum = (member: 'waiting' | 'active' | 'failed'): number =>
        ofKind.reduce((total, counts) => total + counts[member], 0);
      return {
        kind,
        waiting: sum('waiting'),
        active: sum('active'),
        failed: sum('failed'),
        oldestWaitSeconds: Math.max(0, ...ofKind.map(({ oldestWaitSeconds }) => oldestWaitSeconds)),
      };
    });
  }

  private onSent(queue: string): void {
    if (!this.handlers.has(queue)) {
      return;
    }
    // After the response of the request that has just sent the job from here.
    setImmediate(() => this.workers.get(queue)?.wake());
    this.startWorkers().catch((error: unknown) => this.reportStartFailure(error));
  }

  private async startWorkersForJobs(): Promise<void> {
    if (await hasJobs(this.dataSource)) {
      await this.startWorkers();
    }
  }

  private async startWorkers(): Promise<void> {
    const boss = await this.open();
    if (this.stopping || this.workers.size > 0) {
      return;
    }
    for (const { queue, handler } of this.handlers.values()) {
      const handBack: HandBack = (job, data) => this.handBack(boss, queue, job, data);
      const worker = new JobQueueWorker(boss, queue, handler, handBack, this.logger);
      this.workers.set(queue.name, worker);
      worker.start();
    }
    // From here on the workers poll by themselves.
    void this.search.stop();
  }

  private reportStartFailure(error: unknown): void {
    if (!this.stopping) {
      this.logger.error('failed to start job workers', errorStack(error));
    }
  }

  private async open(): Promise<PgBoss> {
    this.opening ??= this.openWithQueues();
    try {
      const boss = await this.opening;
      this.lastFailure = null;
      return boss;
    } catch (error) {
      this.opening = null;
      this.lastFailure = error;
      if (isDatabaseAway(error)) {
        throw error;
      }
      throw new DomainError('unavailable', 'The job queue cannot be used right now.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }

  private async openWithQueues(): Promise<PgBoss> {
    const boss = await openJobStore(this.dataSource, (error) => {
      this.logger.warn('failed to maintain job store', { error: error.message });
    });
    try {
      for (const { queue } of this.handlers.values()) {
        await createQueue(boss, queue);
      }
      return boss;
    } catch (error) {
      await boss.stop({ graceful: false });
      throw error;
    }
  }

  private async handBack(boss: PgBoss, queue: JobQueue, job: JobWithMetadata, data: object): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const db = transactionDatabase(manager);
      const completed = await boss.complete(queue.name, job, null, { db });
      // Else another worker has got it meanwhile.
      if (jsonNumber(completed, 'affected') === 1) {
        await boss.send(queue.name, data, { db });
        await this.notifications.publish(manager, CHANNEL, queue.name);
      }
    });
  }
}

/** The longest kind that equals a queue's name or its beginning. */
function kindOf(name: string, kinds: readonly string[]): string | null {
  const fitting = kinds.filter((kind) => name === kind || name.startsWith(`${kind}-`));
  return fitting.toSorted((one, other) => other.length - one.length)[0] ?? null;
}

/** Fetches, heartbeats and results are short; jobs are sent on the connection of their sender. */
const POOL_SIZE = 2;
const SUPERVISE_SECONDS = 5;
/** Longer than any job may take; the heartbeat finds workers that died. */
const EXPIRE_SECONDS = 4 * 3600;
const KEEP_FINISHED_SECONDS = 3600;
/** Nothing else ends what waits for a job. pg-boss would drop it after two weeks in which the service is off. */
const KEEP_WAITING_SECONDS = 315_360_000;
const QUERY_TIMEOUT_MS = 20_000;

/** Opens pg-boss with a small pool; `onError` receives what fails in the background. */
export async function openJobStore(
  { options }: DataSource,
  onError: (error: Error) => void,
): Promise<PgBoss> {
  if (options.type !== 'postgres' || options.url === undefined) {
    throw new Error('durable jobs need PostgreSQL and its URL');
  }
  // Loaded late: it takes longer than most of the service.
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

const WITHDRAW = `DELETE FROM pgboss.job WHERE name = $1 AND data @> $2 AND state < 'active'`;

/** Leaves out queues without jobs, and needs no pg-boss. */
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

export async function createQueue(store: PgBoss, queue: JobQueue): Promise<void> {
  const common = {
    expireInSeconds: EXPIRE_SECONDS,
    deleteAfterSeconds: KEEP_FINISHED_SECONDS,
    retentionSeconds: KEEP_WAITING_SECONDS,
  };
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

@Module({
  imports: [DatabaseNotificationsModule],
  providers: [DurableJobs],
  exports: [DurableJobs],
})
export class JobsModule {}
