import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from './error-code.js';
import { processIdentity } from './process-identity.js';

/** What `postmaster.pid` says (doc: PostgreSQL's `src/include/utils/pidfile.h` lists its lines). */
export interface PostmasterPid {
  pid: number;
  /** Where it listens; null while it is still being written. */
  socketDirectory: string | null;
}

/** No system gives out this number; PostgreSQL takes the file for a dead server's. */
const NOBODYS_PID = 2_147_483_647;

/** Reads the text of a `postmaster.pid`; null when it names no process. */
export function parsePostmasterPid(text: string): PostmasterPid | null {
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return Number.isInteger(pid) && pid > 0 ? { pid, socketDirectory: lines[4] || null } : null;
}

/** The server that says it uses this cluster; null when there is none. It may be gone: see {@link isPostmasterOf}. */
export async function readPostmasterPid(cluster: string): Promise<PostmasterPid | null> {
  try {
    return parsePostmasterPid(await readFile(path.join(cluster, 'postmaster.pid'), 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

/** Whether a command line is that of a PostgreSQL server on this cluster (its workers rename themselves). */
export function isPostmasterCommand(command: string, cluster: string): boolean {
  return `${command} `.includes(` -D ${cluster} `) && /^\S*postgres\b|\/postgres /.test(command);
}

/** Whether this process is the server of this cluster, and not a later one with the same number. */
export function isPostmasterOf(cluster: string, pid: number): boolean {
  const identity = processIdentity(pid);
  return identity !== null && isPostmasterCommand(identity.command, cluster);
}

/**
 * Makes PostgreSQL see that the server of a pid file is gone although its number belongs to another program now.
 * The file stays, because the server finds the old shared memory through it and refuses to start while one of the
 * old workers is still alive. Only call it while holding the start lock.
 */
export async function disownPostmasterPid(
  cluster: string,
  socketDirectory: string,
  port: number,
): Promise<void> {
  const file = path.join(cluster, 'postmaster.pid');
  const [, ...rest] = (await readFile(file, 'utf8')).split('\n');
  await writeFile(file, [NOBODYS_PID, ...rest].join('\n'), { flag: 'r+' });
  await rm(path.join(socketDirectory, `.s.PGSQL.${port}.lock`), { force: true });
}
