import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import type { Clock } from '@slipway/common/clock.js';
import { SILENT_LOG } from '@slipway/common/log.js';
import { DatabaseAddresses } from '../src/database-addresses.js';
import { DatabaseClock } from '../src/database-clock.js';
import { type Lease, type LeaseEnd, LeasedRows, type LeasedTable } from '../src/leased-rows.js';
import { LeasedWork, LeasedWorker, type LeasedWorkOptions } from '../src/leased-worker.js';
import { DatabaseNotifications } from '../src/database-notifications.js';
import { postgresOptions } from '../src/postgres-options.js';
import { DatabaseProxy } from '../../../test/support/database-proxy.js';
import { ManualClock } from '../../../test/support/manual-clock.js';
import { createTestDatabase, type TestDatabase } from '../../../test/support/test-database.js';
import { until } from '../../../test/support/until.js';

const OPTIONS = { poolSize: 3, applicationName: 'errands' };
/** Never within a test: notifications tell of what is due. */
const NO_POLLING_MS = 600_000;
const LEASE_MS = 600_000;
/** Less than `until` waits for. */
const SHORT_LEASE_MS = 60_000;
/** Longer than rows are taken before they are due, as the clocks of replicas differ. */
const SOON_MS = 400;

const ERRANDS: LeasedTable = {
  table: 'errands',
  key: { column: 'id', type: 'uuid' },
  owner: 'r.owner',
  condition: 'NOT r.done',
  returning: 'r.owner, r.name',
  renewing: 'r.name',
  channel: 'errands',
};

interface Errand extends Lease {
  owner: string;
  name: string;
}

type Doing = (errand: Errand, signal: AbortSignal) => Promise<void | 'ended'>;

/** What one process does. */
class Errands extends LeasedWorker<Errand> {
  readonly begun: Errand[] = [];
  readonly abandoned: [string, string | null][] = [];
  doing: Doing = async () => undefined;
  abandoning: () => Promise<void> = async () => undefined;

  constructor(
    options: Partial<LeasedWorkOptions>,
    readonly dataSource: DataSource,
    readonly notifications: DatabaseNotifications,
    clock: Clock,
  ) {
    const rows = new LeasedRows<Errand>(dataSource, clock, ERRANDS);
    const usual = { queue: 'errand', places: 20, leaseMs: LEASE_MS, pollMs: NO_POLLING_MS };
    super({ ...usual, ...options }, new LeasedWork(notifications, clock), rows, SILENT_LOG);
  }

  get names(): string[] {
    return this.begun.map(({ name }) => name);
  }

  get leases(): LeasedRows<Errand> {
    return this.rows;
  }

  renewNow(): Promise<void> {
    return this.renewing.now();
  }

  protected async work(errand: Errand, signal: AbortSignal): Promise<LeaseEnd | 'ended'> {
    this.begun.push(errand);
    return (await this.doing(errand, signal)) ?? { dueAt: null };
  }

  protected override isWanted({ name }: Errand, nameNow: unknown): boolean {
    return name === nameNow;
  }

  protected override async giveUp({ name }: Errand, failure: string | null): Promise<void> {
    await this.abandoning();
    this.abandoned.push([name, failure]);
  }
}

interface Replica {
  worker: Errands;
  clock: ManualClock;
  stop: () => Promise<void>;
}

let database: TestDatabase;
let observer: DataSource;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  observer = await new DataSource(postgresOptions(database.url, OPTIONS)).initialize();
  await observer.query(
    `CREATE TABLE errands (id uuid PRIMARY KEY, owner text NOT NULL, name text NOT NULL, done boolean NOT NULL DEFAULT false,
       due_at timestamptz, leased_by text, leased_until timestamptz, attempts integer NOT NULL DEFAULT 0)`,
  );
});

afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
  await observer.query('TRUNCATE errands');
});

afterAll(async () => {
  await observer.destroy();
  await database.drop();
});

async function replica(
  doing: Doing = async () => undefined,
  options: Partial<LeasedWorkOptions> = {},
  { url = database.url, ownClock }: { url?: string; ownClock?: Clock } = {},
): Promise<Replica> {
  const addresses = DatabaseAddresses.of(url);
  const dataSource = await new DataSource(postgresOptions(addresses.main, OPTIONS)).initialize();
  const clock = new ManualClock();
  const notifications = new DatabaseNotifications(addresses, SILENT_LOG, 'errands');
  const worker = new Errands(options, dataSource, notifications, ownClock ?? clock);
  worker.doing = doing;
  worker.start();
  const stop = async (): Promise<void> => {
    stops.splice(stops.indexOf(stop), 1);
    await worker.stop();
    await notifications.close();
    await dataSource.destroy();
  };
  stops.push(stop);
  await until(() => notifications.isConnected);
  return { worker, clock, stop };
}

async function add(names: string[], owner = 'Ada', due = new Date(Date.now() - 1_000)): Promise<void> {
  await observer.transaction(async (manager) => {
    for (const [index, name] of names.entries()) {
      const dueAt = new Date(due.getTime() + index);
      const values = [randomUUID(), owner, name, dueAt];
      await manager.query('INSERT INTO errands (id, owner, name, due_at) VALUES ($1, $2, $3, $4)', values);
    }
    await manager.query(`SELECT pg_notify('errands', '')`);
  });
}

const wake = () => observer.query(`SELECT pg_notify('errands', '')`);
const rows = () =>
  observer.query<{ name: string; due_at: Date | null; leased_by: string | null; attempts: number }[]>(
    'SELECT name, due_at, leased_by, attempts FROM errands ORDER BY name',
  );
const isOver = async (): Promise<boolean> =>
  (await rows()).every((row) => row.due_at === null && row.leased_by === null);
const leaseEnd = async (name: string): Promise<number> => {
  const [row] = await observer.query<{ at: Date }[]>(
    'SELECT leased_until AS at FROM errands WHERE name = $1',
    [name],
  );
  return Number(row?.at);
};
/** Renews as a process does that stood still for so long. */
async function renewAfter(worker: Errands, milliseconds: number): Promise<void> {
  const now = performance.now.bind(performance);
  const stalled = jest.spyOn(performance, 'now').mockImplementation(() => now() + milliseconds);
  await worker.renewNow();
  stalled.mockRestore();
}
const signalled = (signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('broken off')));
  });
/** Works until it is broken off, and says so. */
const hanging: Doing = (_errand, signal) => signalled(signal);
const telling =
  (broken: string[]): Doing =>
  ({ name }, signal) =>
    signalled(signal).finally(() => broken.push(name));
const outage = (): Error =>
  new Error('it did not work', { cause: new Error('Connection terminated unexpectedly') });

describe('rows that are due', () => {
  it('are done once they are committed, in another process and without polling, and never if they are not', async () => {
    const { worker } = await replica();
    await expect(
      observer.transaction(async (manager) => {
        const values = [randomUUID(), new Date()];
        await manager.query(
          `INSERT INTO errands (id, owner, name, due_at) VALUES ($1, 'Ada', 'undone', $2)`,
          values,
        );
        await worker.leases.wake(manager);
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    await add(['done']);
    await until(isOver);

    expect(worker.names).toEqual(['done']);
  });

  it('are each done by one of two replicas', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `errand ${index}`);
    const replicas = [await replica(), await replica()];
    await add(names);
    await until(isOver);

    const done = replicas.flatMap(({ worker }) => worker.names);
    expect(done.toSorted()).toEqual(names.toSorted());
    expect((await rows()).every(({ attempts }) => attempts === 1)).toBe(true);
  });

  it('end in the transaction of what they change, or not at all', async () => {
    const { worker } = await replica(
      async (errand) => {
        await observer.transaction(async (manager) => {
          await manager.query('UPDATE errands SET done = true WHERE id = $1', [errand.id]);
          await worker.leases.end(errand, { dueAt: null }, manager);
          if (errand.attempts === 1) {
            throw new Error('rolled back');
          }
        });
        return 'ended';
      },
      { pauseMs: 0 },
    );
    await add(['errand']);
    await until(isOver);

    expect(await rows()).toMatchObject([{ attempts: 2 }]);
    expect(worker.names).toEqual(['errand', 'errand']);
  });

  it('are done when they fall due, without a word of it', async () => {
    const { worker } = await replica();
    await add(['later'], 'Ada', new Date(Date.now() + SOON_MS));
    await until(isOver);

    expect(worker.names).toEqual(['later']);
  });

  it('are begun again when they become due while they are worked on', async () => {
    const { worker } = await replica(async ({ attempts }) => {
      if (attempts === 1) {
        await observer.query('UPDATE errands SET due_at = $1', [new Date()]);
      }
    });
    await add(['errand']);
    await until(isOver);

    expect(worker.names).toEqual(['errand', 'errand']);
  });

  it('are counted with what is under way, what waits, and for how long', async () => {
    const { worker, clock } = await replica(hanging, { places: 1 });
    clock.stop();
    await add(['first', 'second'], 'Ada', new Date(clock.now() - 60_000));
    await add(['later'], 'Ada', new Date(clock.now() + 60_000));
    await until(() => worker.begun.length === 1);

    const { oldestDueSeconds, ...counts } = await worker.leases.backlog();
    expect(counts).toEqual({ due: 1, later: 1, active: 1 });
    expect(oldestDueSeconds).toBeCloseTo(60, 1);
  });
});

describe('owners', () => {
  const under = ({ begun }: Errands, owner: string): number =>
    begun.filter((errand) => errand.owner === owner).length;

  it('take turns, those first whose errands have waited longest', async () => {
    const { worker } = await replica(hanging, { places: 5 });
    await observer.transaction(async () => {
      await observer.query(
        `INSERT INTO errands (id, owner, name, due_at)
         SELECT gen_random_uuid(), owner, owner || n, now() - interval '1 hour' + n * interval '1 second' - late
         FROM (VALUES ('Ada', interval '0'), ('Bob', interval '10 minutes')) AS one (owner, late), generate_series(1, 5) n`,
      );
      await wake();
    });
    await until(() => worker.begun.length === 5);

    expect([under(worker, 'Ada'), under(worker, 'Bob')]).toEqual([2, 3]);
    expect(new Set(worker.names)).toEqual(new Set(['Ada1', 'Ada2', 'Bob1', 'Bob2', 'Bob3']));
  });

  it('have their share of all replicas together', async () => {
    const first = await replica(hanging, { share: 3 });
    await add(['1', '2', '3', '4', '5', '6']);
    await until(() => first.worker.begun.length === 3);
    const second = await replica(hanging, { share: 3 });
    await add(['other'], 'Bob');
    await until(() => first.worker.begun.length + second.worker.begun.length === 4);

    expect(under(first.worker, 'Ada') + under(second.worker, 'Ada')).toBe(3);
  });

  it('who have nothing under way have places that nobody else gets', async () => {
    const { worker } = await replica(hanging, { places: 5, reserved: 2 });
    await add(['1', '2', '3', '4', '5', '6']);
    await until(() => worker.begun.length === 3);
    await add(['other'], 'Bob');
    await until(() => worker.begun.length > 3);

    expect([under(worker, 'Ada'), under(worker, 'Bob')]).toEqual([3, 1]);
  });

  it('do not wait for what is slow: it goes on without its place', async () => {
    const { worker } = await replica(
      ({ name }, signal) => (name.startsWith('slow') ? signalled(signal) : Promise.resolve()),
      { places: 2, slowAfterMs: 1 },
    );
    await add(['slow 1', 'slow 2', 'slow 3', 'quick']);
    await until(() => worker.names.includes('quick'));

    expect(worker.begun).toHaveLength(4);
  });
});

describe('a lease', () => {
  it('of a process that vanished ends, its row is done elsewhere, and what comes of the first changes nothing', async () => {
    const proxy = await DatabaseProxy.start(database.url);
    const broken: string[] = [];
    const proxied = { url: proxy.urlOf(database.url) };
    const gone = await replica(telling(broken), { leaseMs: SHORT_LEASE_MS }, proxied);
    await add(['errand']);
    await until(() => gone.worker.begun.length === 1);
    await proxy.goAway();
    await gone.worker.renewNow();
    expect(broken).toEqual([]);
    const heir = await replica(() => until(() => broken.length === 1));
    heir.clock.advance(LEASE_MS);
    await wake();
    await until(() => heir.worker.begun.length === 1);
    await renewAfter(gone.worker, SHORT_LEASE_MS);
    const [first] = gone.worker.begun;
    const lost = first && (await heir.worker.leases.end(first, { dueAt: new Date() }));
    await until(isOver);

    expect(lost).toBe(false);
    expect(broken).toEqual(['errand']);
    expect(await rows()).toMatchObject([{ attempts: 2 }]);
    await gone.stop();
    await proxy.goAway();
  });

  it('that another process took, since this one stood still, aborts the work of this one', async () => {
    const broken: string[] = [];
    const stalled = await replica(telling(broken));
    await add(['errand']);
    await until(() => stalled.worker.begun.length === 1);
    const other = await replica(async () => undefined);
    other.clock.advance(LEASE_MS);
    await until(async () => {
      await wake();
      return other.worker.begun.length === 1;
    });
    await stalled.worker.renewNow();
    await until(() => broken.length === 1);
    await until(isOver);

    expect([stalled.worker.names, other.worker.names]).toEqual([['errand'], ['errand']]);
  });

  it.each([
    ['looks just then', 0],
    ['looks for work meanwhile', LEASE_MS],
  ])('of a process that died ends by itself, and another one %s', async (_when, tookMs) => {
    const { worker, clock } = await replica();
    clock.stop();
    const take = worker.leases.take.bind(worker.leases);
    const taking = jest.spyOn(worker.leases, 'take').mockImplementationOnce(async (wanted) => {
      const taken = await take(wanted);
      clock.advance(tookMs);
      return taken;
    });
    const end = new Date(clock.now() + (tookMs || SOON_MS));
    await observer.query(
      `INSERT INTO errands (id, owner, name, leased_by, leased_until, due_at)
       VALUES ($1, 'Ada', 'errand', 'the dead', $2, $2)`,
      [randomUUID(), end],
    );
    await wake();
    await until(() => taking.mock.calls.length > 0);
    clock.resume();
    await until(isOver);

    expect(worker.names).toEqual(['errand']);
  });

  it('that nobody took is kept by a process that stood still', async () => {
    const finish = Promise.withResolvers<void>();
    const { worker } = await replica((_errand, signal) => Promise.race([finish.promise, signalled(signal)]));
    await add(['errand']);
    await until(() => worker.begun.length === 1);
    await observer.query(
      `UPDATE errands SET leased_until = now() - interval '1 hour', due_at = now() - interval '1 hour'`,
    );
    await renewAfter(worker, LEASE_MS);
    expect(await observer.query<unknown[]>('SELECT FROM errands WHERE leased_until > now()')).toHaveLength(1);
    finish.resolve();
    await until(isOver);

    expect(worker.names).toEqual(['errand']);
  });

  it('is renewed by itself', async () => {
    const { worker } = await replica(hanging, { leaseMs: 300 });
    await add(['errand']);
    await until(() => worker.begun.length === 1);
    const before = await leaseEnd('errand');
    await until(async () => (await leaseEnd('errand')) > before);

    expect(await leaseEnd('errand')).toBeGreaterThan(before);
  });

  it('is renewed while a transaction holds another row, and that one is not lost', async () => {
    const broken: string[] = [];
    const { worker, clock } = await replica(telling(broken));
    await add(['held', 'free']);
    await until(() => worker.begun.length === 2);
    await observer.transaction(async (manager) => {
      await manager.query(`UPDATE errands SET owner = 'Bob' WHERE name = 'held'`);
      const before = await leaseEnd('free');
      clock.advance(1_000);
      await worker.renewNow();
      expect(await leaseEnd('free')).toBeGreaterThanOrEqual(before + 1_000);
    });

    expect(broken).toEqual([]);
  });

  it('is kept until work that nobody asks for any more has come to its end', async () => {
    const broken: string[] = [];
    const finish = Promise.withResolvers<void>();
    const { worker, clock } = await replica(async ({ name }, signal) => {
      await signalled(signal).catch(() => broken.push(name));
      await finish.promise;
    });
    await add(['errand']);
    await until(() => worker.begun.length === 1);
    await observer.query(`UPDATE errands SET name = 'another errand'`);
    await worker.renewNow();
    await until(() => broken.length === 1);
    const isKept = async (): Promise<boolean> =>
      (
        await observer.query<unknown[]>('SELECT FROM errands WHERE leased_until = $1', [
          new Date(clock.now() + LEASE_MS),
        ])
      ).length === 1;
    clock.stop();
    clock.advance(1_000);
    expect(await isKept()).toBe(false);
    await worker.renewNow();
    expect(await isKept()).toBe(true);
    finish.resolve();
    await until(isOver);

    expect([worker.names, broken]).toEqual([['errand'], ['errand']]);
  });

  it('outlives a clock that is set, as its time is the database’s', async () => {
    const machine = { ahead: 0 };
    const stepped = await DatabaseClock.start(observer, SILENT_LOG, {
      wall: () => Date.now() + machine.ahead,
      monotonic: () => performance.now(),
    });
    const holder = await replica(hanging);
    await add(['errand']);
    await until(() => holder.worker.begun.length === 1);
    const other = await replica(hanging, {}, { ownClock: stepped });
    machine.ahead = 2 * LEASE_MS;
    await add(['next'], 'Bob');
    await until(() => holder.worker.begun.length + other.worker.begun.length === 2);
    machine.ahead = -2 * LEASE_MS;
    await add(['last'], 'Bob');
    await until(() => holder.worker.begun.length + other.worker.begun.length === 3);
    await stepped.stop();

    expect((await rows()).map(({ attempts }) => attempts)).toEqual([1, 1, 1]);
  });

  it('is given back by a process that stops, which counts no attempt, and another one goes on at once', async () => {
    const first = await replica(hanging);
    await add(['errand']);
    await until(() => first.worker.begun.length === 1);
    const second = await replica();
    await first.stop();
    await until(isOver);

    expect(second.worker.begun).toMatchObject([{ name: 'errand', attempts: 1 }]);
  });
});

describe('an attempt that fails', () => {
  it('is made again after a pause that doubles, and given up after the last', async () => {
    const dueIn: number[] = [];
    const { worker, clock } = await replica(() => Promise.reject(new Error('nobody is at home')), {
      mostAttempts: 4,
      pauseMs: 1_000,
    });
    clock.stop();
    await add(['errand'], 'Ada', new Date(clock.now()));
    for (let attempts = 1; attempts < 4; attempts += 1) {
      await until(async () => worker.begun.length === attempts && (await rows())[0]?.leased_by === null);
      dueIn.push(((await rows())[0]?.due_at?.getTime() ?? 0) - clock.now());
      clock.advance(dueIn.at(-1) ?? 0);
      await wake();
    }
    await until(isOver);

    expect(dueIn).toEqual([1_000, 2_000, 4_000]);
    expect(worker.begun.map(({ attempts }) => attempts)).toEqual([1, 2, 3, 4]);
    expect(worker.abandoned).toEqual([['errand', 'nobody is at home']]);
  });

  it('is given up later when that fails, and with the cause', async () => {
    let failures = 0;
    const { worker, clock } = await replica(() => Promise.reject(new Error('nobody is at home')), {
      mostAttempts: 1,
    });
    worker.abandoning = () => {
      failures += 1;
      return failures === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    };
    await add(['errand']);
    await until(async () => failures === 1 && (await rows())[0]?.leased_by === null);
    clock.advance(60_000);
    await wake();
    await until(isOver);

    expect(worker.abandoned).toEqual([['errand', 'nobody is at home']]);
    expect(worker.begun).toHaveLength(1);
  });

  it('of processes that all died is given up without a cause', async () => {
    await add(['errand']);
    await observer.query(
      `UPDATE errands SET attempts = 3, leased_by = 'the dead', leased_until = now() - interval '1 s'`,
    );
    const { worker } = await replica(undefined, { mostAttempts: 3 });
    await wake();
    await until(isOver);

    expect([worker.names, worker.abandoned]).toEqual([[], [['errand', null]]]);
  });

  it('does not count while the database is away, unless it is never there', async () => {
    const { worker } = await replica(() => Promise.reject(outage()), { mostAttempts: 1, pauseMs: 0 });
    await add(['errand']);
    await until(async () => {
      await wake();
      return await isOver();
    });

    expect(worker.begun).toHaveLength(21);
    expect(worker.begun.every(({ attempts }) => attempts === 1)).toBe(true);
    expect(worker.abandoned).toEqual([['errand', 'it did not work']]);
  });
});
