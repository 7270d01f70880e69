import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { JobWithMetadata, PgBoss } from 'pg-boss';
import { DataSource, type EntityManager } from 'typeorm';
import { RepeatedWork } from '../../common/async.js';
import { isDatabaseAway } from '../../common/errors/database-failure.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { errorStack } from '../../common/errors/error-message.js';
import { DatabaseNotifications } from '../notifications/database-notifications.js';
import {
  type HandBack,
  type JobHandler,
  type JobQueue,
  JobQueueWorker,
  withTraceparent,
} from './job-queue.worker.js';
import {
  countJobs,
  createQueue,
  hasJobs,
  openJobStore,
  type QueueCounts,
  transactionDatabase,
} from './job-store.js';

const CHANNEL = 'jobs';
/** How often a process without workers looks whether there is any job at all. */
const SEARCH_MS = 2_000;

/** The jobs of all queues of a kind. */
export interface JobBacklog extends Omit<QueueCounts, 'name'> {
  kind: string;
}

/**
 * Jobs that survive the process that sent them, kept by pg-boss in the service's own database. A job is sent inside
 * the transaction that causes it; each process works on the queues for which it has a handler. pg-boss takes a tenth of
 * the service's memory, so it is loaded with the first job.
 */
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
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Registers the handler of a queue. Called before the application has started. */
  handle(queue: JobQueue, handler: JobHandler): void {
    this.handlers.set(queue.name, { queue, handler });
  }

  /**
   * Sends a job. It exists once the caller's transaction is committed, and a worker, wherever it runs, takes it at once.
   *
   * @param queue name of a queue that some process handles
   * @throws DomainError unavailable while the tables of the jobs cannot be used
   */
  async send(manager: EntityManager, queue: string, data: object): Promise<void> {
    const boss = await this.open();
    await boss.send(queue, withTraceparent(data), { db: transactionDatabase(manager) });
    await this.notifications.publish(manager, CHANNEL, queue);
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
    // What is just being opened has to be closed too.
    const boss = await this.opening?.catch(() => null);
    await boss?.stop({ graceful: false });
  }

  /** Opens the job store and creates the queue, so that the transaction that sends a job need not wait for either. */
  async prepare(queue: JobQueue): Promise<void> {
    const boss = await this.open();
    if (!this.handlers.has(queue.name)) {
      // It belongs to another host, which may be down.
      await createQueue(boss, queue);
    }
  }

  /** Looks now for jobs whose workers died, instead of within seconds. */
  async supervise(): Promise<void> {
    const boss = await this.open();
    await boss.supervise();
  }

  /** Why the tables of the jobs could not be used when that was last tried; null: they could, or nobody has tried. */
  get failure(): unknown {
    return this.lastFailure;
  }

  /** What waits, is worked on and has failed in the queues of all hosts, by the kinds that this process knows. */
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
    // From here on the workers look for themselves.
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
      throw new DomainError('unavailable', 'unavailable', 'The job queue cannot be used right now.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }

  private async openWithQueues(): Promise<PgBoss> {
    const boss = await openJobStore(this.dataSource, (error) => {
      this.logger.warn('job store failed', { error: error.message });
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
      await boss.complete(queue.name, job, null, { db });
      await boss.send(queue.name, data, { db });
      await this.notifications.publish(manager, CHANNEL, queue.name);
    });
  }
}

/** The longest kind that a queue's name is, or begins with. */
function kindOf(name: string, kinds: readonly string[]): string | null {
  const fitting = kinds.filter((kind) => name === kind || name.startsWith(`${kind}-`));
  return fitting.toSorted((one, other) => other.length - one.length)[0] ?? null;
}
