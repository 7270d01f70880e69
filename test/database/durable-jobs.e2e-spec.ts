import { Test } from '@nestjs/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { DatabaseAddresses } from '../../src/database/database-addresses.js';
import { DatabaseModule } from '../../src/database/database.module.js';
import { DurableJobs, JobsModule } from '../../src/database/jobs/durable-jobs.js';
import type { JobHandler, JobQueue } from '../../src/database/jobs/job-queue.worker.js';
import { CryptoModule } from '../../src/common/crypto/secret-cipher.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { forgetWorkers } from '../support/forget-workers.js';
import { until } from '../support/until.js';

const QUEUE: JobQueue = {
  kind: 'test',
  name: 'greetings',
  deadLetter: 'greetings-dead',
  retryLimit: 0,
  retryDelaySeconds: 1,
  concurrency: 20,
  // Never within a test: notifications announce what is sent.
  pollMs: 600_000,
};
const DEAD: JobQueue = { ...QUEUE, name: 'greetings-dead', deadLetter: null };
const KEY = { id: 'test', bytes: Buffer.alloc(32, 7) };

describe('DurableJobs', () => {
  let database: TestDatabase;
  const apps: INestApplicationContext[] = [];

  beforeEach(async () => {
    database = await createTestDatabase();
  });

  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()));
    await database.drop();
  });

  /** One process that works on the queues. */
  const start = async (handlers: [JobQueue, JobHandler][]): Promise<INestApplicationContext> => {
    const testing = await Test.createTestingModule({
      imports: [
        CryptoModule.register([KEY]),
        DatabaseModule.register(DatabaseAddresses.of(database.url), 3),
        JobsModule,
      ],
    }).compile();
    testing.useLogger(false);
    for (const [queue, handler] of handlers) {
      testing.get(DurableJobs).handle(queue, handler);
    }
    await testing.init();
    apps.push(testing);
    return testing;
  };
  /** A process that notes what it is sent. */
  const startNoting = async (): Promise<{ app: INestApplicationContext; done: unknown[] }> => {
    const done: unknown[] = [];
    return { app: await start([[QUEUE, async ({ data }) => void done.push(data)]]), done };
  };
  const send = (app: INestApplicationContext, name: string): Promise<void> =>
    app.get(DataSource).transaction((manager) => app.get(DurableJobs).send(manager, QUEUE.name, { name }));

  const jobs = async (app: INestApplicationContext, queue: string): Promise<string[]> => {
    const rows = await app
      .get(DataSource)
      .query<{ state: string }[]>('SELECT state FROM pgboss.job WHERE name = $1', [queue]);
    return rows.map(({ state }) => state);
  };

  it('does what was committed, and nothing of what was not, with a library that only a job brings along', async () => {
    const { app, done } = await startNoting();
    const connections = async (): Promise<number> => {
      const found = await app
        .get(DataSource)
        .query<unknown[]>(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'slipway jobs'`,
        );
      return found.length;
    };
    expect(await connections()).toBe(0);

    await expect(
      app.get(DataSource).transaction(async (manager) => {
        await app.get(DurableJobs).send(manager, QUEUE.name, { name: 'undone' });
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    await send(app, 'Ada');
    await until(() => done.length > 0);

    expect(done).toEqual([{ name: 'Ada' }]);
    expect(await connections()).toBeGreaterThan(0);
  });

  it('refuses to send outside a transaction', async () => {
    const app = await start([[QUEUE, async () => undefined]]);

    await expect(
      app.get(DurableJobs).send(app.get(DataSource).manager, QUEUE.name, { name: 'Ada' }),
    ).rejects.toThrow('inside of a transaction');
  });

  it('works on many at the same time, however long one takes', async () => {
    const waiting = new Set<() => void>();
    const app = await start([[QUEUE, () => new Promise<void>((resolve) => waiting.add(resolve))]]);

    await Promise.all(Array.from({ length: 20 }, (_, index) => send(app, `guest ${index}`)));
    await until(() => waiting.size >= 20);
    expect(waiting.size).toBe(20);

    waiting.forEach((finish) => finish());
  });

  it('takes the next job as soon as one is done, and never more at once than the queue allows', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    let running = 0;
    let done = 0;
    const app = await start([
      [
        { ...QUEUE, concurrency: 2 },
        async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => waiting.push(resolve));
          running -= 1;
          done += 1;
        },
      ],
    ]);

    await Promise.all(Array.from({ length: 7 }, (_, index) => send(app, `guest ${index}`)));
    await until(() => {
      waiting.splice(0, running === 2 || done >= 6 ? 1 : 0).forEach((finish) => finish());
      return done === 7;
    });

    expect(most).toBe(2);
  });

  it('reaches other processes at once', async () => {
    const sender = await start([]);
    const { app: worker, done } = await startNoting();
    await worker.get(DurableJobs).prepare(QUEUE);

    await send(sender, 'Grace');
    await until(() => done.length > 0);

    expect(done).toEqual([{ name: 'Grace' }]);
  });

  it('hands a job to the next process when it stops, without counting an attempt', async () => {
    let started = false;
    const first = await start([
      [
        QUEUE,
        async ({ signal }) => {
          started = true;
          await until(() => signal.aborted);
          signal.throwIfAborted();
        },
      ],
    ]);
    await send(first, 'Ada');
    await until(() => started);
    await first.close();

    const { done } = await startNoting();
    await until(() => done.length > 0);

    expect(done).toEqual([{ name: 'Ada' }]);
  });

  it('keeps a job that nobody could work on for months', async () => {
    const app = await start([]);
    await app.get(DurableJobs).prepare(QUEUE);
    await send(app, 'Ada');
    await app.get(DataSource).query(
      `UPDATE pgboss.job SET created_on = created_on - interval '200 days',
        start_after = start_after - interval '200 days', keep_until = keep_until - interval '200 days'`,
    );

    await app.get(DurableJobs).supervise();

    expect(await jobs(app, QUEUE.name)).toEqual(['created']);
  });

  it('tells the dead-letter queue why the last attempt failed', async () => {
    const dead: { data: unknown; failure: string | null }[] = [];
    const app = await start([
      [QUEUE, () => Promise.reject(new Error('the guest is not at home'))],
      [{ ...DEAD, pollMs: 50 }, async ({ data, failure }) => void dead.push({ data, failure })],
    ]);

    await send(app, 'Ada');
    await until(() => dead.length > 0);

    expect(dead).toEqual([{ data: { name: 'Ada' }, failure: 'the guest is not at home' }]);
  });

  it('gives the job of a process that died to another one', async () => {
    const done: unknown[] = [];
    let attempts = 0;
    const app = await start([
      [
        { ...QUEUE, retryLimit: 1, pollMs: 50 },
        async ({ data, signal }) => {
          attempts += 1;
          if (attempts === 1) {
            // As if dead: it never ends by itself.
            await until(() => signal.aborted);
            signal.throwIfAborted();
          }
          done.push(data);
        },
      ],
    ]);
    await send(app, 'Ada');
    await until(() => attempts === 1);

    await until(async () => {
      if (attempts === 1) {
        await forgetWorkers(app.get(DataSource));
        await app.get(DurableJobs).supervise();
      }
      return done.length > 0;
    });

    expect([attempts, done]).toEqual([2, [{ name: 'Ada' }]]);
  });

  describe('while the database is away', () => {
    // As a handler sees it that wraps what it caught.
    const outage = (): Error =>
      new Error('it did not work', { cause: new Error('Connection terminated unexpectedly') });

    it('tries a job again without counting the attempt', async () => {
      let attempts = 0;
      const app = await start([
        [
          { ...QUEUE, retryDelaySeconds: 0 },
          () => {
            attempts += 1;
            return attempts <= 3 ? Promise.reject(outage()) : Promise.resolve();
          },
        ],
        [{ ...DEAD, pollMs: 50 }, () => Promise.reject(new Error('nothing was to be given up'))],
      ]);

      await send(app, 'Ada');
      await until(
        async () => attempts === 4 && (await jobs(app, QUEUE.name)).every((state) => state === 'completed'),
      );

      expect(await jobs(app, DEAD.name)).toEqual([]);
    });

    it('leaves a job to the worker that has got it meanwhile', async () => {
      const attempts: PromiseWithResolvers<void>[] = [];
      const app = await start([
        [
          { ...QUEUE, retryLimit: 1, retryDelaySeconds: 0, pollMs: 50 },
          async () => {
            const attempt = Promise.withResolvers<void>();
            attempts.push(attempt);
            await attempt.promise;
          },
        ],
      ]);
      await send(app, 'Ada');
      await until(() => attempts.length === 1);
      await until(async () => {
        if (attempts.length === 1) {
          await forgetWorkers(app.get(DataSource));
          await app.get(DurableJobs).supervise();
        }
        return attempts.length === 2;
      });

      attempts[0]?.reject(outage());
      const closed = app.close();
      attempts[1]?.resolve();
      await closed;

      expect(await jobs(await start([]), QUEUE.name)).toEqual(['completed']);
    });

    it('gives a job up that fails so again and again', async () => {
      const dead: unknown[] = [];
      const app = await start([
        [{ ...QUEUE, retryDelaySeconds: 0 }, () => Promise.reject(outage())],
        [{ ...DEAD, pollMs: 50 }, async ({ failure }) => void dead.push(failure)],
      ]);

      await send(app, 'Ada');
      await until(() => dead.length > 0);

      expect(dead).toEqual(['it did not work']);
    });
  });
});
