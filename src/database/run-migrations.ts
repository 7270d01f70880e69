import { DataSource } from 'typeorm';
import { ConfigError } from '../config/config.error.js';
import { dataSourceOptions } from './open-database.js';

/**
 * What would have to be done to the database for it to fit the entities of the data source; nothing when the
 * migrations and the entities say the same.
 *
 * @returns SQL statements, none of which is run
 */
export async function pendingSchemaChanges(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}

/** Any constant: replicas that start together take turns on it. */
const MIGRATION_LOCK = 7_240_815_553;

/**
 * Applies pending migrations, under an advisory lock so that replicas starting together do it once.
 *
 * @returns the names of the migrations applied now
 * @throws ConfigError when there is no such database to connect to
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
    throw new ConfigError(`DATABASE_URL: the database cannot be reached: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/** One line. The driver's messages name host, user and database at most, never the password. */
function reasonOf(error: unknown): string {
  const { message = '', errors } = error as { message?: string; errors?: unknown[] };
  if (Array.isArray(errors) && errors.length > 0) {
    // A host with several addresses fails once for each, under an error without a text of its own.
    return reasonOf(errors[0]);
  }
  return message.split('\n', 1)[0] || String(error);
}
