import type { DataSourceOptions } from 'typeorm';
import type { AppConfig } from '../config/app-config.js';
import { connectionUrl, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';
import { MIGRATIONS } from './migrations.js';

/** Names our connections in `pg_stat_activity`. */
const APPLICATION_NAME = 'slipway';
/** The driver's 10 s are too short: a new connection plans every statement anew, and its first requests wait for that. */
const IDLE_CONNECTION_MS = 300_000;

/** A database to connect to: the operator's, or the embedded one. */
export interface OpenDatabase {
  url: string;
  /** What an operator should know about the embedded server. */
  notices: readonly string[];
  /** Stops the embedded server, unless another process of this installation uses it. */
  close(): Promise<void>;
}

/**
 * Finds the database that the configuration names, and starts the embedded one unless it is running.
 *
 * @param onLaunched called when the embedded server's process exists; from then on it starts by itself
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

/** How the application, the command line and the tests connect. Whoever needs entities adds them. */
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
