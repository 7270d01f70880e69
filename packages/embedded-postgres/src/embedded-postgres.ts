import { realpathSync } from 'node:fs';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { makePrivateFolder } from '@slipway/common/private-folder.js';
import { findPlatformPackage, type PlatformPackage, prepareBinaries } from './binaries.js';
import { EmbeddedPostgresError, type SupervisionReport, type UnixUser } from './programs.js';
import {
  checkedCluster,
  createCluster,
  createPassword,
  DATABASE_USER,
  dataFolderPaths,
  findCluster,
  readPassword,
} from './cluster.js';
import { DiskReserve, type DiskReserveOptions } from './disk-reserve.js';
import {
  connectToPostmaster,
  type EmbeddedConnection,
  type PostmasterOptions,
  releasePostmaster,
} from './postmaster.js';
import { readPostmasterPid } from './process-identity.js';
import { withStartLock } from './start-lock.js';
import { canReach, chooseUser, readAccounts, SOCKET_PORT, socketDirectoryFor } from './unprivileged-user.js';

const LOOK_MS = 1_000;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** Brings the embedded server back when the lease breaks, with growing pauses, and keeps the disk's reserve. */
export class PostmasterSupervisor {
  private readonly stopping = new AbortController();
  private readonly watch = new RepeatedWork(
    LOOK_MS,
    () => this.reserve.look(this.report),
    (error) => this.report('warn', 'failed to keep disk reserve', { error: errorMessage(error) }),
  );
  private report: SupervisionReport = () => undefined;
  private running: Promise<void> | null = null;

  /** @param lease the connection that shows our use of the server */
  constructor(
    private lease: Client,
    private readonly bringBack: () => Promise<Client>,
    private readonly reserve: DiskReserve,
  ) {}

  start(report: SupervisionReport): void {
    this.report = report;
    this.running ??= this.supervise().catch((error: unknown) => {
      this.report('error', 'failed to supervise embedded database', { error: errorStack(error) });
    });
    this.watch.start();
    void this.watch.now();
  }

  /** Returns the lease, which may have been lost. */
  async stop(): Promise<Client> {
    this.stopping.abort();
    await this.watch.stop();
    await this.running;
    return this.lease;
  }

  private async supervise(): Promise<void> {
    const { signal } = this.stopping;
    for (;;) {
      await untilEnded(this.lease, signal);
      if (signal.aborted) {
        return;
      }
      this.report('warn', 'connection to embedded database lost', {});
      // One that broke for another reason must not look like another client.
      this.lease.end().catch(() => undefined);
      await this.restore(signal);
    }
  }

  private async restore(signal: AbortSignal): Promise<void> {
    const lostAt = performance.now();
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        this.lease = await this.bringBack();
        const ms = Math.round(performance.now() - lostAt);
        this.report('log', 'embedded database is back', { attempt, ms });
        return;
      } catch (error) {
        const retryMs = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (attempt - 1));
        this.report('error', 'failed to restart embedded database', {
          attempt,
          retry_ms: retryMs,
          free_bytes: await this.reserve.freeBytes().catch(() => null),
          error: errorMessage(error),
        });
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}

/** Settles when the connection has ended, perhaps before this call, or when `signal` aborts. */
async function untilEnded(client: Client, signal: AbortSignal): Promise<void> {
  const ended = Promise.withResolvers<void>();
  client.once('end', ended.resolve);
  signal.addEventListener('abort', () => ended.resolve(), { once: true });
  client.query('SELECT 1').catch(() => ended.resolve());
  await ended.promise;
}

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

/** Starts or joins the server of a data folder, on a Unix socket. @throws EmbeddedPostgresError, ConfigError what to do, in a line */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { settings = {}, unusedMs = UNUSED_MS, onLaunched, onNotice = () => undefined } = options;
  const installed = findPlatformPackage();
  const dataDir = path.resolve(options.dataDir);
  const { cluster: entry, lock, log } = dataFolderPaths(dataDir);
  const isNew = await makePrivateFolder(dataDir).catch((error: unknown) => {
    throw new EmbeddedPostgresError(`DATA_DIR: ${errorMessage(error)}`, error);
  });
  const user = chooseUser(process.getuid?.() ?? 0, findCluster(entry), await readAccounts());
  if (isNew && user !== null) {
    // It can pass through, and reads nothing.
    await chown(dataDir, 0, user.gid);
    await chmod(dataDir, 0o710);
  }
  const { server, reserve, client } = await withStartLock(lock, async () => {
    const prepared = await prepareCluster({ ...options, dataDir, onNotice }, installed, user);
    const complete = { ...prepared, log, user, settings, unusedMs, onLaunched };
    const kept = new DiskReserve(`${prepared.cluster}-reserve`, options.reserve);
    await kept.releaseIfFull(onNotice);
    return { server: complete, reserve: kept, client: await connectToPostmaster(complete) };
  });
  const { connection, cluster } = server;
  const supervisor = new PostmasterSupervisor(
    client,
    () => withStartLock(lock, () => connectToPostmaster(server)),
    reserve,
  );
  let stopped: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    const lease = await supervisor.stop();
    await withStartLock(lock, () => releasePostmaster(lease, connection, cluster, onNotice));
  };
  return {
    connection,
    supervise: (report) => supervisor.start(report),
    stop: () => (stopped ??= release()),
  };
}

type PreparedCluster = Pick<PostmasterOptions, 'binaries' | 'cluster' | 'connection'>;

/** A new cluster and copied binaries go to the data folder, if the database's user can reach it. */
async function prepareCluster(
  options: EmbeddedPostgresOptions,
  installed: PlatformPackage,
  user: UnixUser | null,
): Promise<PreparedCluster> {
  const { dataDir, systemFolder = '/var/lib/slipway' } = options;
  if (user === null || canReach(user, realpathSync(dataDir))) {
    return await prepareIn(dataDir, options, installed, user);
  }
  if ((await mkdir(systemFolder, { recursive: true })) !== undefined) {
    // Only root can change it, and all users can pass through.
    await chmod(systemFolder, 0o755);
  }
  // Services with other data folders use it too, and each would clear away what another one is making.
  const { lock } = dataFolderPaths(systemFolder);
  return await withStartLock(lock, () => prepareIn(systemFolder, options, installed, user));
}

async function prepareIn(
  home: string,
  { dataDir, onNotice, initdbArgs = [] }: EmbeddedPostgresOptions,
  installed: PlatformPackage,
  user: UnixUser | null,
): Promise<PreparedCluster> {
  const { cluster: target, password: passwordFile } = dataFolderPaths(dataDir);
  const { folder: binaries, copied } = await prepareBinaries(installed, user, home);
  const isNew = findCluster(target) === null;
  const password = (await readPassword(passwordFile)) ?? (isNew ? await createPassword(passwordFile) : null);
  if (password === null) {
    throw new EmbeddedPostgresError(`${passwordFile} is missing: restore it, or set DATABASE_URL`);
  }
  if (isNew) {
    onNotice?.(`Creating a PostgreSQL ${installed.major} database in ${home}`);
    await createCluster({ binaries, target, home, user, password, initdbArgs });
  }
  if (home !== dataDir && (copied || isNew)) {
    onNotice?.(`The user ${user?.name} cannot reach ${dataDir}: PostgreSQL and its data are in ${home}`);
  } else if (copied) {
    onNotice?.(`PostgreSQL's binaries could not be used where npm put them: they were copied to ${home}`);
  }
  const cluster = checkedCluster(target, user?.uid ?? process.getuid?.(), installed.major);
  // A running server may have been started with another TMPDIR than ours. A folder that was copied while it was in use has
  // the file of the original's server, which must not be joined.
  const running = await readPostmasterPid(cluster);
  const socketDirectory = running?.cluster === cluster ? running.socketDirectory : null;
  const host = socketDirectory ?? socketDirectoryFor(cluster, tmpdir(), process.platform);
  const connection = { host, port: SOCKET_PORT, user: DATABASE_USER, password, database: 'slipway' };
  return { binaries, cluster, connection };
}

/** A URL that pg, TypeORM and the programs of libpq accept. */
export function connectionUrl({ host, port, user, password, database }: EmbeddedConnection): string {
  // URL parsers need a host in front; the one in the query wins.
  const url = new URL(`postgres://localhost:${port}/${encodeURIComponent(database)}`);
  url.username = encodeURIComponent(user);
  url.password = encodeURIComponent(password);
  return `${url.href}?host=${encodeURIComponent(host)}&sslmode=disable`;
}
