import type { AppConfig } from '../config/app-config.js';
import { DatabaseAddresses, findDatabase } from '@slipway/database/database-addresses.js';
import { connectionUrl, startEmbeddedPostgres } from '@slipway/embedded-postgres/embedded-postgres.js';
import type { SupervisionReport } from '@slipway/embedded-postgres/programs.js';
import { APPLICATION_NAME } from './data-source-options.js';

/** The operator's database, or the embedded one. */
export interface OpenDatabase {
  addresses: DatabaseAddresses;
  notices: readonly string[];
  /** From now on an embedded server is brought back when it ends, and its disk keeps a reserve. */
  supervise(report: SupervisionReport): void;
  /** Stops the embedded server, unless another process of this installation uses it. */
  close(): Promise<void>;
}

/** `onLaunched` is called when the embedded server's process exists. @throws ConfigError or EmbeddedPostgresError */
export async function openDatabase(
  config: AppConfig,
  onLaunched: () => void = () => undefined,
): Promise<OpenDatabase> {
  if (config.database.url !== null) {
    const found = await findDatabase(config.database.url, config.database.directUrl, APPLICATION_NAME);
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
