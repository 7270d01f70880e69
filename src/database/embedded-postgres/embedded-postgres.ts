import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findPlatformPackage, prepareBinaries } from './binaries.js';
import {
  checkCluster,
  createCluster,
  createPassword,
  DATABASE_USER,
  dataFolderPaths,
  ensureDataDir,
  ensureSystemFolder,
  findCluster,
  readPassword,
} from './cluster.js';
import { DiskReserve, type DiskReserveOptions } from './disk-reserve.js';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { connectToPostmaster, type EmbeddedConnection, releasePostmaster } from './postmaster.js';
import { PostmasterSupervisor, type SupervisionReport } from './postmaster-supervisor.js';
import { readPostmasterPid } from './process-identity.js';
import { withStartLock } from './start-lock.js';
import {
  canReach,
  chooseUser,
  readAccounts,
  SOCKET_PORT,
  socketDirectoryFor,
  type UnixUser,
} from './unprivileged-user.js';

/** A service that starts again soon after it was killed finds the server as it was. */
const UNUSED_MS = 60_000;

export interface EmbeddedPostgresOptions {
  dataDir: string;
  /** Settings such as `max_connections: '200'`; a running server keeps its own. */
  settings?: Record<string, string>;
  initdbArgs?: string[];
  onNotice?: (line: string) => void;
  /** Called before the server accepts connections, after each start of its process. */
  onLaunched?: () => void;
  reserve?: DiskReserveOptions;
  /** The unused server ends by itself after this time; by default after a minute. */
  unusedMs?: number;
  /** Used instead of the data folder where the database's user cannot reach that. */
  systemFolder?: string;
}

export interface EmbeddedPostgres {
  readonly connection: EmbeddedConnection;
  /** From now on the server is brought back when it ends, and its disk keeps a reserve. */
  supervise(report: SupervisionReport): void;
  /** Stops the server, unless another client is connected. Close your own connections first. */
  stop(): Promise<void>;
}

/**
 * Starts or joins the server of a data folder, on a Unix socket; root runs it as an unprivileged user. A connection
 * that is held until `stop` shows the use.
 * @throws EmbeddedPostgresError one line that says what to do
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const installed = findPlatformPackage();
  const dataDir = path.resolve(options.dataDir);
  const paths = dataFolderPaths(dataDir);
  const user = chooseUser(process.getuid?.() ?? 0, findCluster(paths.cluster), readAccounts());
  await ensureDataDir(dataDir, user);
  const { prepared, client } = await withStartLock(paths.lock, async () => {
    const server = {
      ...(await prepareCluster({ ...options, dataDir }, installed, user)),
      log: paths.log,
      user,
      settings: options.settings ?? {},
      unusedMs: options.unusedMs ?? UNUSED_MS,
      ...(options.onLaunched && { onLaunched: options.onLaunched }),
    };
    return { prepared: server, client: await connectToPostmaster(server) };
  });
  const { connection, cluster } = prepared;
  const supervisor = new PostmasterSupervisor(
    client,
    () => withStartLock(paths.lock, () => connectToPostmaster(prepared)),
    new DiskReserve(`${cluster}-reserve`, options.reserve),
  );
  let stopped: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    const lease = await supervisor.stop();
    await withStartLock(paths.lock, () =>
      releasePostmaster(lease, connection, cluster, options.onNotice ?? (() => undefined)),
    );
  };
  return {
    connection,
    supervise: (report) => supervisor.start(report),
    stop: () => (stopped ??= release()),
  };
}

/** Call it only while holding the start lock. */
async function prepareCluster(
  options: EmbeddedPostgresOptions,
  installed: ReturnType<typeof findPlatformPackage>,
  user: UnixUser | null,
): Promise<{ binaries: string; cluster: string; connection: EmbeddedConnection }> {
  const home = await chooseHome(options, user);
  if (home === options.dataDir) {
    return await prepareIn(home, options, installed, user);
  }
  // Services with other data folders use it too, and each would clear away what another one is making.
  const { lock } = dataFolderPaths(home);
  return await withStartLock(lock, () => prepareIn(home, options, installed, user));
}

async function prepareIn(
  home: string,
  options: EmbeddedPostgresOptions,
  installed: ReturnType<typeof findPlatformPackage>,
  user: UnixUser | null,
): Promise<{ binaries: string; cluster: string; connection: EmbeddedConnection }> {
  const { dataDir, onNotice } = options;
  const paths = dataFolderPaths(dataDir);
  const binaries = await prepareBinaries(installed, user, home);
  const isNew = findCluster(paths.cluster) === null;
  const password = await passwordFor(paths.password, !isNew);
  if (isNew) {
    onNotice?.(`Creating a PostgreSQL ${installed.major} database in ${home}`);
    await createCluster({
      binaries: binaries.folder,
      target: paths.cluster,
      home,
      user,
      password,
      initdbArgs: options.initdbArgs ?? [],
    });
  }
  if (home !== dataDir && (binaries.copied || isNew)) {
    onNotice?.(`The user ${user?.name} cannot reach ${dataDir}: PostgreSQL and its data are in ${home}`);
  } else if (binaries.copied) {
    onNotice?.(`PostgreSQL's binaries could not be used where npm put them: they were copied to ${home}`);
  }
  const cluster = findCluster(paths.cluster);
  if (cluster === null) {
    throw new EmbeddedPostgresError(`The database in ${paths.cluster} has disappeared`);
  }
  checkCluster(cluster, user?.uid ?? process.getuid?.() ?? cluster.uid, installed.major);
  return {
    binaries: binaries.folder,
    cluster: cluster.folder,
    connection: await connectionTo(cluster.folder, password),
  };
}

/** A URL that pg, TypeORM and the programs of libpq accept. */
export function connectionUrl(connection: EmbeddedConnection): string {
  const { host, port, user, password, database } = connection;
  // URL parsers need a host in front; the one in the query wins.
  const url = new URL(`postgres://localhost:${port}/${encodeURIComponent(database)}`);
  url.username = encodeURIComponent(user);
  url.password = encodeURIComponent(password);
  return `${url.href}?host=${encodeURIComponent(host)}&sslmode=disable`;
}

/** A new cluster and copied binaries go to the data folder, if the database's user can reach it. */
async function chooseHome(
  { dataDir, systemFolder = '/var/lib/slipway' }: EmbeddedPostgresOptions,
  user: UnixUser | null,
): Promise<string> {
  if (user === null || canReach(user, realpathSync(dataDir))) {
    return dataDir;
  }
  await ensureSystemFolder(systemFolder);
  return systemFolder;
}

async function passwordFor(file: string, clusterExists: boolean): Promise<string> {
  const known = await readPassword(file);
  if (known === null && clusterExists) {
    throw new EmbeddedPostgresError(`${file} is missing: restore it, or set DATABASE_URL`);
  }
  return known ?? createPassword(file);
}

async function connectionTo(cluster: string, password: string): Promise<EmbeddedConnection> {
  // A running server may have been started with another TMPDIR than ours.
  const running = await readPostmasterPid(cluster);
  return {
    host: running?.socketDirectory ?? socketDirectoryFor(cluster, tmpdir(), process.platform),
    port: SOCKET_PORT,
    user: DATABASE_USER,
    password,
    database: 'slipway',
  };
}
