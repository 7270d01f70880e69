import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { openLog } from './cluster.js';
import { EmbeddedPostgresError, spawnDetached, type UnixUser } from './programs.js';
import { disownPostmasterPid, isPostmasterOf, readPostmasterPid } from './process-identity.js';
import { ensureSocketDirectory } from './unprivileged-user.js';

/** Names our leases in `pg_stat_activity`. */
const LEASE_NAME = 'slipway embedded database';
const CONNECT_TIMEOUT_MS = 5_000;
const POLL_MS = 10;
/** Crash recovery of a full write-ahead log can take a while. */
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
/** Connections that were just closed take a while to disappear from the server's list. */
const CLOSE_GRACE_MS = 2_000;
const MAX_OUTPUT_BYTES = 16_384;
/** The predecessor, or a worker of it, is not gone yet, so a later start may work. */
const STARTS_LATER = /pre-existing shared memory block|lock file ".*" already exists/;

export type EmbeddedConnection = Record<'host' | 'user' | 'password' | 'database', string> & { port: number };

export interface PostmasterOptions extends Record<'binaries' | 'cluster' | 'log', string> {
  user: UnixUser | null;
  connection: EmbeddedConnection;
  settings: Record<string, string>;
  unusedMs: number;
  readyMs?: number;
  onLaunched?: (() => void) | undefined;
}

/** Joins or starts the server, under the start lock. @throws EmbeddedPostgresError */
export async function connectToPostmaster(options: PostmasterOptions): Promise<Client> {
  const deadline = performance.now() + (options.readyMs ?? READY_TIMEOUT_MS);
  let last: unknown;
  while (performance.now() < deadline) {
    const found = await probe(options.connection);
    if (found.client !== null) {
      return found.client;
    }
    last = found.error;
    if (found.refusal === 'no database') {
      await createDatabase(options.connection);
    } else if (found.refusal === 'not ready' || (await isStartingOrStopping(options))) {
      await delay(POLL_MS);
    } else {
      const failure = await startPostmaster(options, deadline);
      if (failure !== null) {
        last = failure;
        await delay(POLL_MS * 10);
      }
    }
  }
  throw new EmbeddedPostgresError(`PostgreSQL did not become ready in time: see ${options.log}`, last);
}

/** Stops the server, unless another client is connected, under the start lock. @throws EmbeddedPostgresError */
export async function releasePostmaster(
  lease: Client,
  connection: EmbeddedConnection,
  cluster: string,
  onNotice: (line: string) => void,
): Promise<void> {
  // The server may have been started again since the lease broke.
  const { client } = await lease.query('select 1').then(
    () => ({ client: lease }),
    () => probe(connection),
  );
  if (client === null) {
    return;
  }
  const isUsed = await isUsedByOthers(client).finally(() => client.end());
  if (isUsed) {
    onNotice('PostgreSQL keeps running: other programs are connected to it');
  } else if (!(await stopPostmaster(cluster))) {
    onNotice('PostgreSQL keeps running: it does not belong to this machine or container');
  }
}

/** Resolves to null once the server accepts connections, or to its output when another attempt makes sense. */
async function startPostmaster(options: PostmasterOptions, deadline: number): Promise<string | null> {
  if (options.connection.host !== options.cluster) {
    await ensureSocketDirectory(options.connection.host, options.user);
  }
  const log = await openLog(options.log);
  const program = path.join(options.binaries, 'bin/postgres');
  const command = [program, '-D', options.cluster, ...flags(options)] as const;
  const child = await spawnDetached(command, options.user, log.fd).finally(() => log.close());
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  options.onLaunched?.();
  try {
    while (!hasEnded() && performance.now() < deadline) {
      const { client } = await probe(options.connection, 'postgres');
      if (client !== null) {
        await client.end();
        return null;
      }
      await delay(POLL_MS);
    }
  } finally {
    // One that is not ready goes on to recover, and the next start joins it.
    if (!hasEnded()) {
      await stopWhenUnused({ ...options, pid: child.pid ?? 0 }, options.unusedMs);
    }
  }
  const output = (await readFile(options.log)).toString('utf8', log.size, log.size + MAX_OUTPUT_BYTES);
  if (!hasEnded() || STARTS_LATER.test(output)) {
    return output;
  }
  const reason = output.split('\n').find((line) => /FATAL|PANIC|error/.test(line)) ?? `see ${options.log}`;
  throw new EmbeddedPostgresError(`PostgreSQL could not be started: ${reason.trim()}`);
}

/** The command line wins over the cluster's files. These flags keep statements and their values out of the log. */
function flags({ connection, settings }: PostmasterOptions): string[] {
  const all: Record<string, string> = {
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    cluster_name: 'slipway',
    ...settings,
    listen_addresses: '',
    port: `${connection.port}`,
    unix_socket_directories: `"${connection.host.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
  };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Whether the server is alive without listening. Disowns a pid file that only seems to say so. */
async function isStartingOrStopping({ cluster, connection }: PostmasterOptions): Promise<boolean> {
  const running = await readPostmasterPid(cluster);
  const isOurs = running !== null && isPostmasterOf(cluster, running.pid);
  if (running !== null && !isOurs) {
    await disownPostmasterPid(cluster, connection.host, connection.port);
  }
  return isOurs;
}

/** False when the server cannot be seen from here, such as one in another container. @throws EmbeddedPostgresError */
async function stopPostmaster(cluster: string): Promise<boolean> {
  const running = await readPostmasterPid(cluster);
  if (running === null || !isPostmasterOf(cluster, running.pid)) {
    return running === null;
  }
  process.kill(running.pid, 'SIGINT'); // PostgreSQL's "fast" shutdown
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (isPostmasterOf(cluster, running.pid)) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(`PostgreSQL (process ${running.pid}) does not stop`);
    }
    await delay(POLL_MS);
  }
  return true;
}

async function createDatabase(connection: EmbeddedConnection): Promise<void> {
  const { client } = await probe(connection, 'postgres');
  await client?.query(`create database ${client.escapeIdentifier(connection.database)}`);
  await client?.end();
}

async function isUsedByOthers(client: Client): Promise<boolean> {
  const deadline = performance.now() + CLOSE_GRACE_MS;
  for (;;) {
    const { rows } = await client.query<{ leases: number; others: number }>(
      `select count(*) filter (where application_name = $1)::int as leases, count(*)::int as others
         from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
      [LEASE_NAME],
    );
    const { leases = 0, others = 0 } = rows[0] ?? {};
    if (others === 0 || leases > 0 || performance.now() > deadline) {
      return others > 0;
    }
    await delay(POLL_MS);
  }
}

/** @throws EmbeddedPostgresError for a refusal that does not change by waiting */
async function probe(
  connection: EmbeddedConnection,
  database = connection.database,
): Promise<{ client: Client } | { client: null; refusal: Refusal; error: unknown }> {
  const client = new Client({
    ...connection,
    database,
    ssl: false,
    application_name: LEASE_NAME,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // A lost connection would be an uncaught exception without a listener; `stop` notices it by itself.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return { client };
  } catch (error) {
    const refusal = classifyConnectError(error);
    if (refusal !== null) {
      return { client: null, refusal, error };
    }
    const code = errorCode(error) ?? 'unknown reason';
    const reason = code.startsWith('28') ? 'the password in DATA_DIR/postgres-password does not fit' : code;
    throw new EmbeddedPostgresError(`The embedded PostgreSQL refuses us: ${reason}`, error);
  }
}

/** `not ready`: the server is starting, recovering or shutting down. */
type Refusal = 'not ready' | 'absent' | 'no database';
const REFUSALS: readonly (readonly [Refusal, RegExp])[] = [
  ['absent', /^(ENOENT|ECONNREFUSED)$/],
  // invalid_catalog_name
  ['no database', /^3D000$/],
  // admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections; EAGAIN: the socket's backlog is full
  ['not ready', /^(57P0[123]|53300|ECONNRESET|EPIPE|EAGAIN)$/],
];

/** Returns null for an error that another attempt does not cure. */
export function classifyConnectError(error: unknown): Refusal | null {
  // pg sets no code on these two.
  const isCut = error instanceof Error && /terminated|timeout/i.test(error.message);
  const code = errorCode(error) ?? '';
  return REFUSALS.find(([, codes]) => codes.test(code))?.[0] ?? (isCut ? 'not ready' : null);
}

const LOOKS = 6;

// Titles of PostgreSQL's processes have `[local]` for connections over its socket, and `startup` for the recovery. A shell
// takes a megabyte, needs no password, and ends when the pid file no longer leads to a server with children.
const SCRIPT = `
server=$1 cluster=$2 pause=$3 looks=$4 unused=0
titles() {
  if [ -r "/proc/$server/task/$server/children" ]; then
    read -r children < "/proc/$server/task/$server/children"
    for child in $children; do
      title=
      read -r title < "/proc/$child/cmdline"
      echo "$title"
    done
  else
    ps -A -o ppid= -o command= | while read -r parent title; do
      if [ "$parent" = "$server" ]; then echo "$title"; fi
    done
  fi
}
while sleep "$pause"; do
  pid=
  if [ -r "$cluster/postmaster.pid" ]; then read -r pid < "$cluster/postmaster.pid"; fi
  if [ "$pid" != "$server" ]; then exit; fi
  case $(titles) in
    *'[local]'* | *' startup'*) unused=0 ;;
    *'postgres: '*) unused=$((unused + 1)) ;;
    *) exit ;;
  esac
  if [ "$unused" -ge "$looks" ]; then
    kill -INT "$server"
    exit
  fi
done`;

/** Runs as a process that outlives a killed service. @throws EmbeddedPostgresError without a shell */
export async function stopWhenUnused(
  { pid, cluster, user }: { pid: number; cluster: string; user: UnixUser | null },
  unusedMs: number,
): Promise<void> {
  const pause = (unusedMs / 1000 / LOOKS).toFixed(2);
  const args = ['slipway-postgres-watch', `${pid}`, cluster, pause, `${LOOKS}`];
  await spawnDetached(['/bin/sh', '-c', SCRIPT, ...args], user, 'ignore');
}
