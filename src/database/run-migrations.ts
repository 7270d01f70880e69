import { setTimeout as delay } from 'node:timers/promises';
import { DataSource, type QueryRunner } from 'typeorm';
import { type DatabaseAddress, unreachable } from './database-addresses.js';
import { dataSourceOptions } from './data-source-options.js';

/** An arbitrary number: the advisory lock of replicas that start together. */
const MIGRATION_LOCK = 7_240_815_553;
/** How often a replica asks whether another one has finished. */
const LOCK_POLL_MS = 100;

/**
 * Applies pending migrations, under an advisory lock so that of replicas that start together only one does.
 *
 * @param address one that keeps its session, for the lock; a text is an address with nothing in between
 * @returns the names of the migrations applied now
 * @throws ConfigError when the database cannot be reached
 */
export async function runMigrations(address: DatabaseAddress | string): Promise<string[]> {
  const dataSource = await connect(address);
  try {
    const lock = dataSource.createQueryRunner();
    try {
      await takeLock(dataSource, lock);
      const applied = await dataSource.runMigrations({ transaction: 'each' });
      return applied.map((migration) => migration.name);
    } finally {
      await lock.query('SELECT pg_advisory_unlock_all()');
      await lock.release();
    }
  } finally {
    await dataSource.destroy();
  }
}

/**
 * Asks again and again: a statement that waits for the lock holds a snapshot, for whose end the holder of the lock would wait
 * in turn as soon as it builds an index concurrently.
 */
async function takeLock(dataSource: DataSource, session: QueryRunner): Promise<void> {
  const tryLock = async (): Promise<boolean> => {
    const text = 'SELECT pg_try_advisory_lock($1) AS locked';
    const [row] = await dataSource.query<{ locked: boolean }[]>(text, [MIGRATION_LOCK], session);
    return row?.locked ?? false;
  };
  while (!(await tryLock())) {
    await delay(LOCK_POLL_MS);
  }
}

/** Names of this version's migrations that a database does not have. */
export async function missingMigrations(dataSource: DataSource): Promise<string[]> {
  const rows = await dataSource.query<{ name: string }[]>('SELECT name FROM schema_migrations');
  const applied = new Set(rows.map(({ name }) => name));
  return dataSource.migrations
    .map((migration) => migration.name ?? migration.constructor.name)
    .filter((name) => !applied.has(name));
}

async function connect(address: DatabaseAddress | string): Promise<DataSource> {
  try {
    return await new DataSource(dataSourceOptions(address, 2)).initialize();
  } catch (error) {
    throw unreachable('DATABASE_URL', error);
  }
}

/**
 * The SQL that would make the database fit the entities of the data source, without running it. Empty when migrations
 * and entities agree.
 */
export async function pendingSchemaChanges(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}
