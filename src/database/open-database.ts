import type { AppConfig } from '../config/app-config.js';
import { connectionUrl, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';

/** A PostgreSQL that is there: the operator's, or the embedded one. */
export interface OpenDatabase {
  url: string;
  /** Stops the embedded server (unless another process of this installation uses it); nothing to do otherwise. */
  close(): Promise<void>;
}

/**
 * Finds the database that the configuration names.
 *
 * @param onNotice receives the few lines an operator should see of the embedded server
 */
export async function openDatabase(
  config: AppConfig,
  onNotice: (line: string) => void,
): Promise<OpenDatabase> {
  if (config.database.url !== null) {
    return { url: config.database.url, close: () => Promise.resolve() };
  }
  const server = await startEmbeddedPostgres({ dataDir: config.dataDir, onNotice });
  return { url: connectionUrl(server.connection), close: () => server.stop() };
}
