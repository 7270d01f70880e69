import { setTimeout as delay } from 'node:timers/promises';
import {
  AbstractLogger,
  DataSource,
  type DataSourceOptions,
  type EntitySubscriberInterface,
  EventSubscriber,
  type QueryRunner,
  type TransactionStartEvent,
} from 'typeorm';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { ConfigError } from '../config/config.error.js';
import { type DatabaseAddress, unreachable } from './database-addresses.js';
import { dataSourceOptions } from './data-source-options.js';
import { MIGRATIONS } from './migrations.js';

/** An arbitrary number: the advisory lock of replicas that start together. */
const MIGRATION_LOCK = 7_240_815_553;
/** How often a replica checks whether another one has finished. */
const LOCK_POLL_MS = 100;
/** Requests for a table queue behind a migration that waits for it, so it gives way and tries again. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_PAUSE_MS = 2_000;
/** How long migrations are retried. */
const PATIENCE_MS = 120_000;
const LOCK_NOT_AVAILABLE = '55P03';

export interface MigrationOptions {
  /** Those of this version by default. */
  migrations?: NonNullable<DataSourceOptions['migrations']>;
  /** How long a statement waits for a table before its migration is rolled back. */
  lockTimeoutMs?: number;
  /** How long a migration that could not lock its table is retried. */
  patienceMs?: number;
  /** Called with the number of attempts so far, each time somebody held a table for too long. */
  onLocked?: (attempt: number) => void;
}

/**
 * Applies pending migrations, under an advisory lock so that of replicas that start together only one does. A migration that
 * cannot lock its table in time is rolled back and begun again, so that requests of older replicas are never held up for longer.
 *
 * @param address one that keeps its session, for the lock; a text is an address with nothing in between
 * @returns the names of the migrations applied now
 * @throws ConfigError when the database cannot be reached, or somebody holds a table for minutes
 */
export async function runMigrations(
  address: DatabaseAddress | string,
  {
    migrations = MIGRATIONS,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    patienceMs = PATIENCE_MS,
    onLocked,
  }: MigrationOptions = {},
): Promise<string[]> {
  const dataSource = await connect(address, migrations, lockTimeoutMs);
  try {
    const lock = dataSource.createQueryRunner();
    try {
      await takeLock(dataSource, lock);
      const deadline = performance.now() + patienceMs;
      const before = new Set(await appliedMigrations(dataSource));
      for (let attempt = 1; !(await applyPending(dataSource)); attempt += 1) {
        if (performance.now() > deadline) {
          throw new ConfigError(
            'DATABASE_URL: a migration could not lock its table: end what has used it for long ' +
              '(SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start), then start again',
          );
        }
        onLocked?.(attempt);
        await delay(Math.min(lockTimeoutMs, LOCK_PAUSE_MS));
      }
      return (await appliedMigrations(dataSource)).filter((name) => !before.has(name));
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

/** @returns false when one of them could not lock its table; those before it are applied */
async function applyPending(dataSource: DataSource): Promise<boolean> {
  try {
    await dataSource.runMigrations({ transaction: 'each' });
    return true;
  } catch (error) {
    if (errorCode(error) === LOCK_NOT_AVAILABLE) {
      return false;
    }
    throw error;
  }
}

/** In the order in which they were applied; none in a new database. */
async function appliedMigrations(dataSource: DataSource): Promise<string[]> {
  const [found] = await dataSource.query<{ exists: boolean }[]>(
    `SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`,
  );
  if (!found?.exists) {
    return [];
  }
  const rows = await dataSource.query<{ name: string }[]>('SELECT name FROM schema_migrations ORDER BY id');
  return rows.map(({ name }) => name);
}

/** Names of this version's migrations that a database does not have. */
export async function missingMigrations(dataSource: DataSource): Promise<string[]> {
  const rows = await dataSource.query<{ name: string }[]>('SELECT name FROM schema_migrations');
  const applied = new Set(rows.map(({ name }) => name));
  return dataSource.migrations
    .map((migration) => migration.name ?? migration.constructor.name)
    .filter((name) => !applied.has(name));
}

/** Failures are also thrown, and appear in the service's own log. */
class SilentLogger extends AbstractLogger {
  protected override writeLog(): void {
    // Nothing is written.
  }
}

/** A large table may take its time once it is locked, but nobody waits for the lock itself for long. */
function limitsOf(lockTimeoutMs: number): new () => EntitySubscriberInterface {
  @EventSubscriber()
  class MigrationLimits implements EntitySubscriberInterface {
    async afterTransactionStart({ queryRunner }: TransactionStartEvent): Promise<void> {
      await queryRunner.query(
        `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`,
      );
    }
  }
  return MigrationLimits;
}

async function connect(
  address: DatabaseAddress | string,
  migrations: NonNullable<DataSourceOptions['migrations']>,
  lockTimeoutMs: number,
): Promise<DataSource> {
  try {
    return await new DataSource({
      ...dataSourceOptions(address, 2),
      migrations,
      subscribers: [limitsOf(lockTimeoutMs)],
      logger: new SilentLogger(),
    }).initialize();
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
