import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgresError, errorCode } from './embedded-postgres.error.js';

/** What tells a process from a later one with the same number. */
interface ProcessIdentity {
  /** Differs between two processes that had the same id. */
  startedAt: string;
  /** Its command line, arguments separated by single spaces. */
  command: string;
}

/**
 * The state and start time in `/proc/PID/stat` (proc(5), fields 3 and 22; field 2 may hold spaces and brackets).
 */
export function parseProcStat(text: string): { state: string; startTime: string } {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
}

/** A line of `ps -o stat= -o lstart= -o command=`; null when it is empty. */
export function parsePsLine(line: string): (ProcessIdentity & { state: string }) | null {
  const match = /^\s*(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\d{4})\s+(.*)$/.exec(line.trimEnd());
  return match ? { state: match[1] ?? '', startedAt: match[2] ?? '', command: match[3] ?? '' } : null;
}

/** Who has this process id; null for nobody, and for a process that has ended and only waits to be reaped. */
export function processIdentity(pid: number): ProcessIdentity | null {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

function fromProc(pid: number): ProcessIdentity | null {
  try {
    const { state, startTime } = parseProcStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    if (state === 'Z' || state === 'X') {
      return null;
    }
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trimEnd();
    // A process that is ending loses its command line before it becomes a zombie; kernel threads have none.
    return command === '' ? null : { startedAt: `${boot}/${startTime}`, command };
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ESRCH') {
      return null;
    }
    throw error;
  }
}

function fromPs(pid: number): ProcessIdentity | null {
  const { stdout, error } = spawnSync(
    'ps',
    ['-ww', '-p', `${pid}`, '-o', 'stat=', '-o', 'lstart=', '-o', 'command='],
    {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    },
  );
  if (error) {
    throw error;
  }
  const found = parsePsLine(stdout);
  return found === null || found.state.startsWith('Z')
    ? null
    : { startedAt: found.startedAt, command: found.command };
}

/** What `postmaster.pid` says (doc: PostgreSQL's `src/include/utils/pidfile.h` lists its lines). */
interface PostmasterPid {
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

const FREE = 'free';
const RETRY_MS = 20;

/**
 * Does the work while no other process (or call) holds the lock of this folder; waits for it if need be. A holder
 * that was killed loses the lock.
 *
 * Node has no flock(2), and a single lock file cannot be taken over from a dead holder without a moment in which two
 * newcomers both take it. So each turn has a number: whoever creates the file numbered one above a finished turn has
 * the lock, creation decides between rivals, and a file is only removed while a higher one exists. The files are
 * symbolic links, because those appear together with their content.
 *
 * @param folder made when it is missing
 * @throws EmbeddedPostgresError when the holder does not finish within `timeoutMs`
 */
export async function withStartLock<T>(
  folder: string,
  work: () => Promise<T>,
  timeoutMs = 180_000,
): Promise<T> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const self = processIdentity(process.pid);
  const content = `${process.pid} ${self?.startedAt ?? ''}`;
  const deadline = Date.now() + timeoutMs;
  let turn = await takeTurn(folder, content);
  while (turn === null) {
    if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `Another process has been starting or stopping PostgreSQL for too long (${folder})`,
      );
    }
    await delay(RETRY_MS);
    turn = await takeTurn(folder, content);
  }
  try {
    return await work();
  } finally {
    const released = path.join(folder, `${turn}.${FREE}`);
    await symlink(FREE, released);
    await rename(released, path.join(folder, `${turn}`));
  }
}

/** The number of our turn, or null when it is somebody else's. */
async function takeTurn(folder: string, content: string): Promise<number | null> {
  const last = (await turns(folder)).at(-1) ?? 0;
  if (last > 0 && !(await isOver(path.join(folder, `${last}`)))) {
    return null;
  }
  const mine = last + 1;
  try {
    await symlink(content, path.join(folder, `${mine}`));
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      return null;
    }
    throw error;
  }
  const all = await turns(folder);
  if ((all.at(-1) ?? 0) > mine) {
    // The listing was old: higher turns have come since, and ours was cleared away before we made it again.
    await rm(path.join(folder, `${mine}`), { force: true });
    return null;
  }
  await Promise.all(
    all.filter((turn) => turn < mine).map((turn) => rm(path.join(folder, `${turn}`), { force: true })),
  );
  return mine;
}

async function turns(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((a, b) => a - b);
}

async function isOver(file: string): Promise<boolean> {
  let content: string;
  try {
    content = await readlink(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return false; // Cleared away by a later turn: look again.
    }
    throw error;
  }
  if (content === FREE) {
    return true;
  }
  const [pid, startedAt] = content.split(' ');
  return processIdentity(Number(pid))?.startedAt !== startedAt;
}
