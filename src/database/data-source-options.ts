import type { DataSourceOptions } from 'typeorm';
import type { DatabaseAddress } from '@slipway/database/database-addresses.js';
import { applyMigrations, type MigrationOptions } from '@slipway/database/migration-runner.js';
import { postgresOptions } from '@slipway/database/postgres-options.js';
import { MIGRATIONS } from './migrations.js';

/** Names our connections in `pg_stat_activity`. */
export const APPLICATION_NAME = 'slipway';

/** Returns the options that the application, the command line and tests share. */
export function dataSourceOptions(address: DatabaseAddress | string, poolSize: number): DataSourceOptions {
  return postgresOptions(address, { poolSize, applicationName: APPLICATION_NAME, migrations: MIGRATIONS });
}

/** Brings the schema to this release's. Returns what was applied. @throws ConfigError as `applyMigrations` does */
export async function runMigrations(
  address: DatabaseAddress | string,
  options: Partial<MigrationOptions> = {},
): Promise<string[]> {
  return await applyMigrations(address, {
    migrations: MIGRATIONS,
    applicationName: APPLICATION_NAME,
    ...options,
  });
}
