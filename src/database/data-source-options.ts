import type { DataSourceOptions } from 'typeorm';
import { MIGRATIONS } from './migrations.js';

/** Connection name in `pg_stat_activity`. */
const APPLICATION_NAME = 'slipway';
/** A new connection plans every statement anew, which its first requests would wait for; the driver keeps them 10 s. */
const IDLE_CONNECTION_MS = 300_000;

/** What the app, the command line and the tests connect with; entities are added by who needs them. */
export function dataSourceOptions(url: string, poolSize: number): DataSourceOptions {
  return {
    type: 'postgres',
    url,
    entities: [],
    migrations: MIGRATIONS,
    migrationsTableName: 'schema_migrations',
    synchronize: false,
    poolSize,
    applicationName: APPLICATION_NAME,
    connectTimeoutMS: 5_000,
    extra: {
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      statement_timeout: 15_000,
      idle_in_transaction_session_timeout: 30_000,
    },
  };
}
