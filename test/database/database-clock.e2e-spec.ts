import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { DatabaseClock } from '../../src/database/database-clock.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;

describe('DatabaseClock', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let queries: number;
  let wallAhead: number;
  let slept: number;
  let databaseAhead: number;

  const time = {
    wall: () => Date.now() + wallAhead,
    monotonic: () => performance.now() - slept,
  };
  /** The test's database, as if its clock went ahead. */
  const asked = {
    query: async <T>(sql: string): Promise<T> => {
      queries += 1;
      const [row] = await dataSource.query<[{ ms: number }]>(sql);
      return [{ ms: row.ms + databaseAhead }] as T;
    },
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await new DataSource(dataSourceOptions(database.url, 1)).initialize();
  });

  beforeEach(() => {
    queries = 0;
    wallAhead = 0;
    slept = 0;
    databaseAhead = 0;
  });

  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const differenceTo = async (clock: DatabaseClock): Promise<number> => {
    const [row] = await dataSource.query<[{ ms: number }]>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float AS ms',
    );
    return clock.now() - row.ms - databaseAhead;
  };

  it('has the time of the database, however wrong the clock of the machine is', async () => {
    wallAhead = -5 * HOUR_MS;
    const clock = await DatabaseClock.start(asked, time);

    expect(Math.abs(await differenceTo(clock))).toBeLessThan(100);
    await clock.onModuleDestroy();
  });

  it.each([HOUR_MS, -HOUR_MS])('is not moved by a clock that is set by %d ms', async (byMs) => {
    const clock = await DatabaseClock.start(asked, time);
    const before = clock.now();
    wallAhead = byMs;

    expect(clock.now() - before).toBeLessThan(1_000);
    expect(clock.now()).toBeGreaterThanOrEqual(before);
    await clock.onModuleDestroy();
  });

  it('asks the database when the machine has slept', async () => {
    const clock = await DatabaseClock.start(asked, time);
    const before = queries;
    slept = HOUR_MS;

    await until(async () => Math.abs(await differenceTo(clock)) < 100);
    expect(queries).toBeGreaterThan(before);
    await clock.onModuleDestroy();
  });

  it('follows the clock of the database', async () => {
    const clock = await DatabaseClock.start(asked, time);
    databaseAhead = 10_000;
    await clock.compare();

    expect(Math.abs(await differenceTo(clock))).toBeLessThan(100);
    await clock.onModuleDestroy();
  });

  it('goes on while the database cannot be asked', async () => {
    const clock = await DatabaseClock.start(asked, time);
    const broken = await DatabaseClock.start(
      { query: (sql: string) => (queries > 6 ? Promise.reject(new Error('gone')) : asked.query(sql)) },
      time,
    );
    queries = 100;
    wallAhead = HOUR_MS;

    expect(Math.abs(broken.now() - clock.now())).toBeLessThan(100);
    await expect(broken.compare()).rejects.toThrow('gone');
    expect(Math.abs(broken.now() - clock.now())).toBeLessThan(100);
    await clock.onModuleDestroy();
    await broken.onModuleDestroy();
  });
});
