import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { SILENT_LOG } from '@slipway/common/log.js';
import { DatabaseClock } from '../src/database-clock.js';
import { postgresOptions } from '../src/postgres-options.js';
import { createTestDatabase, type TestDatabase } from '../../../test/support/test-database.js';
import { until } from '../../../test/support/until.js';

const HOUR_MS = 3_600_000;
/** Far less than what any clock here is moved by, and more than a busy machine takes for a query. */
const CLOSE_MS = 30_000;

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
    dataSource = await new DataSource(
      postgresOptions(database.url, { poolSize: 1, applicationName: 'clock' }),
    ).initialize();
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

  /** By how much the clock is outside of the time in which the database was asked, however long that took. */
  const differenceTo = async (clock: DatabaseClock): Promise<number> => {
    const before = clock.now();
    const [row] = await dataSource.query<[{ ms: number }]>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float AS ms',
    );
    const moment = row.ms + databaseAhead;
    return Math.max(0, before - moment, moment - clock.now());
  };

  it('has the time of the database, however wrong the clock of the machine is', async () => {
    wallAhead = -5 * HOUR_MS;
    const clock = await DatabaseClock.start(asked, SILENT_LOG, time);

    expect(await differenceTo(clock)).toBeLessThan(CLOSE_MS);
    await clock.stop();
  });

  it.each([HOUR_MS, -HOUR_MS])('is not moved by a clock that is set by %d ms', async (byMs) => {
    const clock = await DatabaseClock.start(asked, SILENT_LOG, time);
    const before = clock.now();
    wallAhead = byMs;

    expect(clock.now() - before).toBeLessThan(CLOSE_MS);
    expect(clock.now()).toBeGreaterThanOrEqual(before);
    await clock.stop();
  });

  it('asks the database when the machine has slept', async () => {
    const clock = await DatabaseClock.start(asked, SILENT_LOG, time);
    const before = queries;
    slept = HOUR_MS;

    await until(async () => (await differenceTo(clock)) < CLOSE_MS);
    expect(queries).toBeGreaterThan(before);
    await clock.stop();
  });

  it('follows the clock of the database', async () => {
    const clock = await DatabaseClock.start(asked, SILENT_LOG, time);
    databaseAhead = HOUR_MS;
    await clock.compare();

    expect(await differenceTo(clock)).toBeLessThan(CLOSE_MS);
    await clock.stop();
  });

  it('goes on while the database cannot be asked', async () => {
    const clock = await DatabaseClock.start(asked, SILENT_LOG, time);
    const broken = await DatabaseClock.start(
      { query: (sql: string) => (queries > 6 ? Promise.reject(new Error('gone')) : asked.query(sql)) },
      SILENT_LOG,
      time,
    );
    queries = 100;
    wallAhead = HOUR_MS;

    expect(Math.abs(broken.now() - clock.now())).toBeLessThan(CLOSE_MS);
    await expect(broken.compare()).rejects.toThrow('gone');
    expect(Math.abs(broken.now() - clock.now())).toBeLessThan(CLOSE_MS);
    await clock.stop();
    await broken.stop();
  });
});
