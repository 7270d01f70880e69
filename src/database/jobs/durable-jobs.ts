import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Db, JobWithMetadata, PgBoss } from 'pg-boss';
import { DataSource, type EntityManager } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { errorStack } from '../../common/errors/error-message.js';
import { DatabaseNotifications } from '../notifications/database-notifications.js';
import { HEARTBEAT_SECONDS, type JobHandler, JobLoop, type JobQueue } from './job-loop.js';

const CHANNEL = 'jobs';
/** Between two looks for jobs of which nothing was heard, before the first one is there. */
const LOOK_MS = 2_000;
const ANY_JOB = 'SELECT EXISTS (SELECT FROM pgboss.job) AS found';

/**
 * Jobs that survive the process that sent them, kept by pg-boss in the service's own database. A job is sent inside of
 * the transaction that causes it; each process works on the queues for which it has a handler. The library, which takes
 * a tenth of the service's memory, is loaded once there is a job.
 */
@Injectable()
export class DurableJobs implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  private readonly logger = new Logger(DurableJobs.name);
  private readonly handlers = new Map<string, { queue: JobQueue; handler: JobHandler }>();
  private readonly loops = new Map<string, JobLoop>();
  private opening: Promise<PgBoss> | null = null;
  private starting: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
  private stopping = false;
  private deaf: (() => void) | null = null;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Names who does the jobs of a queue. To be called before the application has started. */
  handle(queue: JobQueue, handler: JobHandler): void {
    this.handlers.set(queue.name, { queue, handler });
  }

  /**
   * Sends a job: it exists once the caller's transaction is committed, and is taken up at once then, wherever.
   *
   * @param queue name of a queue that some process handles
   * @throws DomainError unavailable while the tables of the jobs cannot be reached
   */
  async send(manager: EntityManager, queue: string, data: object): Promise<void> {
    const boss = await this.open();
    await boss.send(queue, data, { db: transactionDatabase(manager) });
    await this.notifications.publish(manager, CHANNEL, queue);
  }

  /** Begins to work; jobs of an earlier time are looked for beside the start. */
  onApplicationBootstrap(): void {
    if (this.handlers.size === 0) {
      return;
    }
    this.deaf = this.notifications.listen(
      CHANNEL,
      (queue) => this.hear(queue),
      () => {
        this.lookForJobs();
        this.loops.forEach((loop) => loop.wake());
      },
    );
    this.timer = setInterval(() => this.lookForJobs(), LOOK_MS).unref();
  }

  /** Before requests in flight end, so that what they send is left to others. */
  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    this.deaf?.();
    clearInterval(this.timer);
    // Whatever is being opened right now has to be there to be closed.
    await this.opening?.catch(() => undefined);
    await Promise.all([...this.loops.values()].map((loop) => loop.stop()));
  }

  async onApplicationShutdown(): Promise<void> {
    const boss = await this.opening?.catch(() => null);
    await boss?.stop({ graceful: false });
  }

  /** Makes everything ready for a job of the queue, so that the transaction which sends one need not wait for that. */
  async prepare(queue: JobQueue): Promise<void> {
    const boss = await this.open();
    if (!this.handlers.has(queue.name)) {
      // Another host's, which may not be up.
      await createQueue(boss, queue);
    }
  }

  /** Looks for jobs whose workers died, now; otherwise that is done every few seconds. */
  async supervise(): Promise<void> {
    const boss = await this.open();
    await boss.supervise();
  }

  private hear(queue: string): void {
    // Whoever has just sent the job from here answers first.
    setImmediate(() => this.loops.get(queue)?.wake());
    if (this.handlers.has(queue)) {
      this.inTurn(() => this.startLoops());
    }
  }

  private lookForJobs(): void {
    if (this.starting !== null) {
      return;
    }
    this.inTurn(async () => {
      const [row] = await this.dataSource.query<{ found: boolean }[]>(ANY_JOB);
      if (row?.found) {
        await this.startLoops();
      }
    });
  }

  /** Does what may start the loops, until they are there; what fails is tried again by the next look. */
  private inTurn(task: () => Promise<void>): void {
    const own = this.after(this.starting, task).finally(() => {
      if (this.starting === own) {
        this.starting = null;
      }
    });
    this.starting = own;
  }

  private async after(before: Promise<void> | null, task: () => Promise<void>): Promise<void> {
    await before;
    if (this.loops.size > 0 || this.stopping) {
      return;
    }
    try {
      await task();
    } catch (error) {
      if (!this.stopping) {
        this.logger.error('jobs cannot be worked on', errorStack(error));
      }
    }
  }

  private async startLoops(): Promise<void> {
    const boss = await this.open();
    for (const { queue, handler } of this.stopping ? [] : this.handlers.values()) {
      const handBack = (job: JobWithMetadata): Promise<void> => this.handBack(boss, queue, job);
      const loop = new JobLoop(boss, queue, handler, { handBack }, this.logger);
      this.loops.set(queue.name, loop);
      loop.start();
    }
    // From here on the loops look for themselves.
    clearInterval(this.timer);
  }

  private async open(): Promise<PgBoss> {
    this.opening ??= this.openAll();
    try {
      return await this.opening;
    } catch (error) {
      this.opening = null;
      throw new DomainError('unavailable', 'unavailable', 'The job queue cannot be reached right now.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }

  private async openAll(): Promise<PgBoss> {
    const boss = await openJobStore(this.dataSource, (error) => {
      this.logger.warn(`job queue: ${error.message}`);
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

  /** A new job in the place of the old one: an attempt that we ended ourselves is none. */
  private async handBack(boss: PgBoss, queue: JobQueue, job: JobWithMetadata): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const db = transactionDatabase(manager);
      await boss.complete(queue.name, job, null, { db });
      await boss.send(queue.name, job.data, { db });
      await this.notifications.publish(manager, CHANNEL, queue.name);
    });
  }
}

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
async function openJobStore({ options }: DataSource, onTrouble: (error: Error) => void): Promise<PgBoss> {
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
async function createQueue(store: PgBoss, queue: JobQueue): Promise<void> {
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

/** Lets pg-boss write inside a transaction of ours. */
function transactionDatabase(manager: EntityManager): Db {
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
