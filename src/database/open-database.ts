import type { DataSourceOptions } from 'typeorm';
import type { AppConfig } from '../config/app-config.js';
import { connectionUrl, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';
import { MIGRATIONS } from './migrations.js';

/** A PostgreSQL that is there: the operator's, or the embedded one. */
export interface OpenDatabase {
  url: string;
  /** The few lines about the embedded server that an operator should see. */
  notices: readonly string[];
  /** Stops the embedded server (unless another process of this installation uses it); nothing to do otherwise. */
  close(): Promise<void>;
}

/**
 * Finds the database that the configuration names; the embedded one is started where it does not run yet.
 *
 * @param onLaunched called when the embedded server's process is there; from then on it starts by itself
 */
export async function openDatabase(
  config: AppConfig,
  onLaunched: () => void = () => undefined,
): Promise<OpenDatabase> {
  if (config.database.url !== null) {
    return { url: config.database.url, notices: [], close: () => Promise.resolve() };
  }
  const notices: string[] = [];
  const server = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    onNotice: (line) => notices.push(line),
    onLaunched,
  });
  return { url: connectionUrl(server.connection), notices, close: () => server.stop() };
}

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
