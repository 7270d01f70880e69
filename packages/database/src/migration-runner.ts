import { setTimeout as delay } from 'node:timers/promises';
import {
  AbstractLogger,
  DataSource,
  type DataSourceOptions,
  type EntitySubscriberInterface,
  EventSubscriber,
  MigrationExecutor,
  type QueryRunner,
  type TransactionStartEvent,
} from 'typeorm';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { type DatabaseAddress, unreachable } from './database-addresses.js';
import { type PostgresOptions, postgresOptions } from './postgres-options.js';

/** An arbitrary number: the advisory lock of replicas that start together. */
const MIGRATION_LOCK = 7_240_815_553;
const LOCK_POLL_MS = 100;
/** Finds the connection that holds the lock, for `pg_terminate_backend`: it may outlive a machine that was lost. */
const LOCK_HOLDER = `
  SELECT pid AS server_pid, client_addr AS address, backend_start AS since
  FROM pg_stat_activity JOIN pg_locks USING (pid)
  WHERE datname = current_database() AND locktype = 'advisory' AND granted AND (classid::bigint << 32) + objid::bigint = $1`;
/** Requests for a table queue behind a migration that waits for it, so it gives way and tries again. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_PAUSE_MS = 2_000;
const PATIENCE_MS = 120_000;
const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

export interface MigrationOptions {
  migrations: NonNullable<DataSourceOptions['migrations']>;
  /** Of the connection that applies them, in `pg_stat_activity`. */
  applicationName: string;
  /** How long a statement may wait for its table before its migration is rolled back. */
  lockTimeoutMs?: number;
  patienceMs?: number;
  /** Gets a line for the log. */
  onWait?: (message: string, fields: object) => void;
}

/**
 * Applies pending migrations under an advisory lock of replicas. One that cannot lock its table in time is rolled back
 * and retried, so that requests are not held up.
 * @throws ConfigError when the database cannot be reached, a table stays locked for minutes, or a right is missing
 */
export async function applyMigrations(
  address: DatabaseAddress | string,
  {
    migrations,
    applicationName,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    patienceMs = PATIENCE_MS,
    onWait = () => undefined,
  }: MigrationOptions,
): Promise<string[]> {
  const dataSource = await connect(address, { poolSize: 1, applicationName, migrations }, lockTimeoutMs);
  try {
    // The lock ends with the session, and so does what runs under it.
    const session = dataSource.createQueryRunner();
    try {
      await session.query('SET idle_session_timeout = 0');
      await takeLock(dataSource, session, 5 * lockTimeoutMs, onWait);
      const deadline = performance.now() + patienceMs;
      const before = new Set(await appliedMigrations(dataSource, session));
      for (let attempt = 1; !(await applyPending(dataSource, session)); attempt += 1) {
        if (performance.now() > deadline) {
          throw new ConfigError(
            'DATABASE_URL: a migration could not lock its table: end what has used it for long ' +
              '(SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start), then start again',
          );
        }
        onWait('migration waits for a table that is in use', { attempt });
        await delay(Math.min(lockTimeoutMs, LOCK_PAUSE_MS));
      }
      const applied = (await appliedMigrations(dataSource, session)).filter((name) => !before.has(name));
      // A failure ends the session, and its lock.
      await session.query('SELECT pg_advisory_unlock_all()');
      return applied;
    } finally {
      await session.release();
    }
  } catch (error) {
    if (errorCode(error) !== INSUFFICIENT_PRIVILEGE) {
      throw error;
    }
    throw new ConfigError(
      `DATABASE_URL: ${errorMessage(error)}: its role has to own the database and the tables ` +
        '(ALTER DATABASE … OWNER TO …; REASSIGN OWNED BY … TO …)',
      { cause: error },
    );
  } finally {
    await dataSource.destroy();
  }
}

/** Polls: a statement that waits for the lock holds a snapshot, for whose end a concurrent index build would wait. */
async function takeLock(
  dataSource: DataSource,
  session: QueryRunner,
  reportMs: number,
  onWait: NonNullable<MigrationOptions['onWait']>,
): Promise<void> {
  const tryLock = async (): Promise<boolean> => {
    const text = 'SELECT pg_try_advisory_lock($1) AS locked';
    const [row] = await dataSource.query<{ locked: boolean }[]>(text, [MIGRATION_LOCK], session);
    return row?.locked ?? false;
  };
  for (let attempt = 1; !(await tryLock()); attempt += 1) {
    if ((attempt * LOCK_POLL_MS) % reportMs === 0) {
      const [holder] = await dataSource.query<object[]>(LOCK_HOLDER, [MIGRATION_LOCK], session);
      onWait('migration waits for that of another replica', { ...holder });
    }
    await delay(LOCK_POLL_MS);
  }
}

/** False when one could not lock its table; those before it are applied. */
async function applyPending(dataSource: DataSource, session: QueryRunner): Promise<boolean> {
  const executor = new MigrationExecutor(dataSource, session);
  executor.transaction = 'each';
  try {
    await executor.executePendingMigrations();
    return true;
  } catch (error) {
    if (errorCode(error) === LOCK_NOT_AVAILABLE) {
      return false;
    }
    throw error;
  }
}

async function appliedMigrations(dataSource: DataSource, session: QueryRunner): Promise<string[]> {
  const [found] = await dataSource.query<{ exists: boolean }[]>(
    `SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`,
    [],
    session,
  );
  if (!found?.exists) {
    return [];
  }
  const text = 'SELECT name FROM schema_migrations ORDER BY id';
  const rows = await dataSource.query<{ name: string }[]>(text, [], session);
  return rows.map(({ name }) => name);
}

/** This version's migrations that a database does not have. */
export async function missingMigrations(dataSource: DataSource): Promise<string[]> {
  const rows = await dataSource.query<{ name: string }[]>('SELECT name FROM schema_migrations');
  const applied = new Set(rows.map(({ name }) => name));
  return dataSource.migrations
    .map((migration) => migration.name ?? migration.constructor.name)
    .filter((name) => !applied.has(name));
}

class SilentLogger extends AbstractLogger {
  protected override writeLog(): void {
    // Nothing is written.
  }
}

/** A large table may take its time once it is locked; only the wait for the lock is short. */
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
  options: PostgresOptions,
  lockTimeoutMs: number,
): Promise<DataSource> {
  try {
    return await new DataSource({
      ...postgresOptions(address, options),
      subscribers: [limitsOf(lockTimeoutMs)],
      logger: new SilentLogger(),
    }).initialize();
  } catch (error) {
    throw unreachable('DATABASE_URL', error);
  }
}

/** SQL that would make the database fit the entities; empty when migrations and entities agree. */
export async function pendingSchemaChanges(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}
