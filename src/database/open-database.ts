import type { AppConfig } from '../config/app-config.js';
import { DatabaseAddresses, findDatabase } from './database-addresses.js';
import { connectionUrl, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';
import type { SupervisionReport } from './embedded-postgres/postmaster-supervisor.js';

/** A database to connect to: the operator's, or the embedded one. */
export interface OpenDatabase {
  addresses: DatabaseAddresses;
  /** What an operator should know about the embedded server, or about a pooler. */
  notices: readonly string[];
  /** From now on an embedded server is brought back when it ends, and its disk keeps a reserve. */
  supervise(report: SupervisionReport): void;
  /** Stops the embedded server, unless another process of this installation uses it. */
  close(): Promise<void>;
}

/**
 * Finds the database that the configuration names, and starts the embedded one unless it is running.
 *
 * @param onLaunched called when the embedded server's process exists; from then on it starts by itself
 * @throws ConfigError or EmbeddedPostgresError when there is no database to work with; one line for the operator
 */
export async function openDatabase(
  config: AppConfig,
  onLaunched: () => void = () => undefined,
): Promise<OpenDatabase> {
  if (config.database.url !== null) {
    const found = await findDatabase(config.database.url, config.database.directUrl);
    return { ...found, supervise: () => undefined, close: () => Promise.resolve() };
  }
  const notices: string[] = [];
  const server = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    onNotice: (line) => notices.push(line),
    onLaunched,
  });
  return {
    addresses: DatabaseAddresses.of(connectionUrl(server.connection)),
    notices,
    supervise: (report) => server.supervise(report),
    close: () => server.stop(),
  };
}
