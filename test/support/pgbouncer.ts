import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { until } from './until.js';

const PORT = 6432;
/** Debian's package puts it where the PATH of ordinary users does not look. */
const PLACES = ['pgbouncer', '/usr/sbin/pgbouncer'];

/** A PgBouncer in front of the tests' PostgreSQL. */
export interface PgBouncer {
  /** The same database as seen through the pooler. */
  urlOf(databaseUrl: string): string;
  stop(): Promise<void>;
}

/** The program, if this machine has it. */
export function findPgBouncer(): string | null {
  return PLACES.find((program) => spawnSync(program, ['--version']).status === 0) ?? null;
}

/**
 * Starts a PgBouncer that listens on a socket of its own. It never runs as root, which it refuses.
 *
 * @param mode how long a client keeps a connection to the server
 * @param settings further lines of its `[pgbouncer]` section
 */
export async function startPgBouncer(
  serverUrl: string,
  mode: 'session' | 'transaction',
  settings: readonly string[] = [],
): Promise<PgBouncer> {
  const program = findPgBouncer();
  if (program === null) {
    throw new Error('pgbouncer is not installed');
  }
  const { hostname, port, username, password, searchParams } = new URL(serverUrl);
  const host = searchParams.get('host') ?? hostname;
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-pgbouncer-'));
  const file = path.join(folder, 'pgbouncer.ini');
  const users = path.join(folder, 'users.txt');
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${host} port=${port}`,
      '[pgbouncer]',
      'listen_addr =',
      `listen_port = ${PORT}`,
      `unix_socket_dir = ${folder}`,
      'auth_type = trust',
      `auth_file = ${users}`,
      `pool_mode = ${mode}`,
      'default_pool_size = 4',
      ...settings,
      '',
    ].join('\n'),
  );
  writeFileSync(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
  // The socket of an embedded server is its user's alone.
  const identity = process.getuid?.() === 0 ? unprivileged(host) : null;
  if (identity !== null) {
    for (const each of [folder, file, users]) {
      chownSync(each, identity.uid, identity.gid);
    }
  }
  chmodSync(folder, 0o755);
  const child = spawn(program, ['--quiet', file], { cwd: '/', stdio: 'ignore', ...identity });
  const ended = once(child, 'exit');
  const killChild = (): boolean => child.kill('SIGKILL');
  process.once('exit', killChild);
  const urlOf = (databaseUrl: string): string => {
    const url = new URL(databaseUrl);
    url.hostname = 'localhost';
    url.port = `${PORT}`;
    url.search = `?host=${encodeURIComponent(folder)}`;
    return url.href;
  };
  await until(async () => child.exitCode !== null || (await accepts(urlOf(serverUrl))));
  if (child.exitCode !== null) {
    throw new Error(`pgbouncer ended with ${child.exitCode}`);
  }
  return {
    urlOf,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      process.off('exit', killChild);
      await rm(folder, { recursive: true, maxRetries: 10 });
    },
  };
}

/** The owner of the server's socket; null for a server over TCP. */
function unprivileged(host: string): { uid: number; gid: number } {
  const { uid, gid } = host.startsWith('/') ? statSync(host) : { uid: 65_534, gid: 65_534 };
  return { uid: uid === 0 ? 65_534 : uid, gid: uid === 0 ? 65_534 : gid };
}

async function accepts(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end();
  }
}
