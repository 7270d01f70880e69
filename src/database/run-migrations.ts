import { DataSource } from 'typeorm';
import { ConfigError } from '../config/config.error.js';
import { dataSourceOptions } from './open-database.js';

/** An arbitrary number: the advisory lock of replicas that start together. */
const MIGRATION_LOCK = 7_240_815_553;

/**
 * Applies pending migrations, under an advisory lock so that of replicas that start together only one does.
 *
 * @returns the names of the migrations applied now
 * @throws ConfigError when the database cannot be reached
 */
export async function runMigrations(databaseUrl: string): Promise<string[]> {
  const dataSource = await connect(databaseUrl);
  try {
    const lock = dataSource.createQueryRunner();
    try {
      // Waiting for another replica's migration may take longer than any ordinary statement.
      await lock.query('SET statement_timeout = 0');
      await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
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

async function connect(databaseUrl: string): Promise<DataSource> {
  try {
    return await new DataSource(dataSourceOptions(databaseUrl, 2)).initialize();
  } catch (error) {
    throw new ConfigError(`DATABASE_URL: the database cannot be reached: ${connectionFailure(error)}`, {
      cause: error,
    });
  }
}

/** One line. The driver's messages name at most host, user and database, never the password. */
function connectionFailure(error: unknown): string {
  const { message = '', errors } = error as { message?: string; errors?: unknown[] };
  if (Array.isArray(errors) && errors.length > 0) {
    // A host with several addresses fails once for each, under an error without a message of its own.
    return connectionFailure(errors[0]);
  }
  return message.split('\n', 1)[0] || String(error);
}

/**
 * The SQL that would make the database fit the entities of the data source, without running it. Empty when migrations
 * and entities agree.
 */
export async function pendingSchemaChanges(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}
