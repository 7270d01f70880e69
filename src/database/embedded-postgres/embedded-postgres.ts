import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { prepareBinaries, findPlatformPackage } from './binaries.js';
import {
  checkCluster,
  createCluster,
  DATABASE_USER,
  ensureSystemFolder,
  findCluster,
  createPassword,
  dataFolderPaths,
  ensureDataDir,
  readPassword,
} from './cluster.js';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { readPostmasterPid, withStartLock } from './process-identity.js';
import { connectToPostmaster, type EmbeddedConnection, releasePostmaster } from './postmaster.js';
import {
  SOCKET_PORT,
  socketDirectoryFor,
  canReach,
  chooseUser,
  readAccounts,
  type UnixUser,
} from './unprivileged-user.js';

export interface EmbeddedPostgresOptions {
  /** Absolute path of the data folder; made when it is missing. */
  dataDir: string;
  /** Settings of the server (`max_connections: '200'`); a server that runs already keeps its own. */
  settings?: Record<string, string>;
  /** Further arguments of initdb, for a new cluster. */
  initdbArgs?: string[];
  /** Gets one line when there is something that an operator should know. */
  onNotice?: (line: string) => void;
  /** Called each time that the server's process was started, before the server answers. */
  onLaunched?: () => void;
  /** Used instead of the data folder where the database's user cannot reach that. */
  systemFolder?: string;
}

/** A running embedded PostgreSQL. */
export interface EmbeddedPostgres {
  readonly connection: EmbeddedConnection;
  /**
   * Stops the server, unless somebody else is connected to it: then it is theirs. Close your own connections first.
   */
  stop(): Promise<void>;
}

/**
 * Runs the embedded PostgreSQL of a data folder: makes its database on the first start, recovers after a crash, and
 * joins a server that runs already. It listens on a Unix socket only and asks for a password. Under root the server
 * runs as an unprivileged user. One connection is held until `stop`, so that others see that it is in use.
 *
 * @throws EmbeddedPostgresError one line that says what to do
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const installed = findPlatformPackage();
  const dataDir = path.resolve(options.dataDir);
  const paths = dataFolderPaths(dataDir);
  const user = chooseUser(process.getuid?.() ?? 0, findCluster(paths.cluster), readAccounts());
  await ensureDataDir(dataDir, user);
  const { client, connection, cluster } = await withStartLock(paths.lock, async () => {
    const place = await prepare(options, dataDir, user);
    const lease = await connectToPostmaster({
      ...place,
      log: paths.log,
      user,
      settings: options.settings ?? {},
      ...(options.onLaunched && { onLaunched: options.onLaunched }),
    });
    return { client: lease, connection: place.connection, cluster: place.cluster };
  });
  let stopped: Promise<void> | undefined;
  const release = (): Promise<void> =>
    withStartLock(paths.lock, () =>
      releasePostmaster(client, connection, cluster, options.onNotice ?? (() => undefined)),
    );
  return { connection, stop: () => (stopped ??= release()) };

  async function prepare(
    given: EmbeddedPostgresOptions,
    folder: string,
    runner: UnixUser | null,
  ): Promise<{ binaries: string; cluster: string; connection: EmbeddedConnection }> {
    const home = await chooseHome(given, folder, runner);
    const binaries = await prepareBinaries(installed, runner, home);
    const existing = findCluster(paths.cluster);
    const password = await passwordFor(paths.password, existing !== null);
    if (existing === null) {
      given.onNotice?.(`Creating a PostgreSQL ${installed.major} database in ${home}`);
      await createCluster({
        binaries: binaries.folder,
        place: paths.cluster,
        home,
        user: runner,
        password,
        initdbArgs: given.initdbArgs ?? [],
      });
    }
    if (home !== folder && (binaries.copied || existing === null)) {
      given.onNotice?.(
        `The user ${runner?.name} cannot reach ${folder}: PostgreSQL and its data are in ${home}`,
      );
    } else if (binaries.copied) {
      given.onNotice?.(
        `PostgreSQL's binaries could not be used where npm put them: they were copied to ${home}`,
      );
    }
    const made = findCluster(paths.cluster);
    if (made === null) {
      throw new EmbeddedPostgresError(`The database in ${paths.cluster} has disappeared`);
    }
    checkCluster(made, runner?.uid ?? process.getuid?.() ?? made.uid, installed.major);
    return {
      binaries: binaries.folder,
      cluster: made.folder,
      connection: await connectionTo(made.folder, password),
    };
  }
}

/** A URL for the connection that pg, TypeORM and libpq's programs take alike. */
export function connectionUrl(connection: EmbeddedConnection): string {
  const { host, port, user, password, database } = connection;
  // The host in front is a placeholder that URL parsers ask for; the one in the query wins.
  const url = new URL(`postgres://localhost:${port}/${encodeURIComponent(database)}`);
  url.username = encodeURIComponent(user);
  url.password = encodeURIComponent(password);
  return `${url.href}?host=${encodeURIComponent(host)}&sslmode=disable`;
}

/** Where what npm's folder cannot serve and a new cluster go: the data folder, if the database's user gets there. */
async function chooseHome(
  options: EmbeddedPostgresOptions,
  dataDir: string,
  user: UnixUser | null,
): Promise<string> {
  if (user === null || canReach(user, realpathSync(dataDir))) {
    return dataDir;
  }
  const folder = options.systemFolder ?? '/var/lib/slipway';
  await ensureSystemFolder(folder);
  return folder;
}

async function passwordFor(file: string, clusterExists: boolean): Promise<string> {
  const known = await readPassword(file);
  if (known === null && clusterExists) {
    throw new EmbeddedPostgresError(`${file} is missing: restore it, or set DATABASE_URL`);
  }
  return known ?? createPassword(file);
}

async function connectionTo(cluster: string, password: string): Promise<EmbeddedConnection> {
  // A running server says where it listens; its TMPDIR may have been another than ours.
  const running = await readPostmasterPid(cluster);
  return {
    host: running?.socketDirectory ?? socketDirectoryFor(cluster, tmpdir(), process.platform),
    port: SOCKET_PORT,
    user: DATABASE_USER,
    password,
    database: 'slipway',
  };
}
