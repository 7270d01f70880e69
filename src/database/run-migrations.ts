import { DataSource } from 'typeorm';
import { dataSourceOptions } from './data-source-options.js';

/** Any constant: replicas that start together take turns on it. */
const MIGRATION_LOCK = 7_240_815_553;

/**
 * Applies pending migrations, under an advisory lock so that replicas starting together do it once.
 *
 * @returns the names of the migrations applied now
 */
export async function runMigrations(databaseUrl: string): Promise<string[]> {
  const dataSource = new DataSource(dataSourceOptions(databaseUrl, 2));
  await dataSource.initialize();
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
