import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '@slipway/common/errors/error-message.js';

/** No system assigns this id, so PostgreSQL takes the file for a dead server's. */
const UNUSED_PID = 2_147_483_647;

interface ProcessIdentity {
  startedAt: string;
  command: string;
}

/** PostgreSQL's `src/include/utils/pidfile.h` lists the lines of `postmaster.pid`. */
interface PostmasterPid {
  pid: number;
  socketDirectory: string | null;
}

/** Null when there is no such process, or when it only waits to be reaped. */
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

/** proc(5), `/proc/PID/stat`, fields 3 and 22; field 2 may hold spaces and brackets. */
export function parseProcStat(text: string): { state: string; startTime: string } {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
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

/** A line of `ps -o stat= -o lstart= -o command=`. */
export function parsePsLine(line: string): (ProcessIdentity & { state: string }) | null {
  const match = /^\s*(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\d{4})\s+(.*)$/.exec(line.trimEnd());
  return match ? { state: match[1] ?? '', startedAt: match[2] ?? '', command: match[3] ?? '' } : null;
}

/** Whether this process is the server of this cluster, and not a later process with the same id. */
export function isPostmasterOf(cluster: string, pid: number): boolean {
  const identity = processIdentity(pid);
  return identity !== null && isPostmasterCommand(identity.command, cluster);
}

/** Matches the server only: its workers rename themselves. */
export function isPostmasterCommand(command: string, cluster: string): boolean {
  return `${command} `.includes(` -D ${cluster} `) && /^\S*postgres\b|\/postgres /.test(command);
}

/** The server that claims this cluster; it may be gone: see {@link isPostmasterOf}. */
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

export function parsePostmasterPid(text: string): PostmasterPid | null {
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return Number.isInteger(pid) && pid > 0 ? { pid, socketDirectory: lines[4] || null } : null;
}

/**
 * Marks the server as gone. The file stays, since it leads a new server to old shared memory and workers. Call it only
 * while holding the start lock.
 */
export async function disownPostmasterPid(
  cluster: string,
  socketDirectory: string,
  port: number,
): Promise<void> {
  const file = path.join(cluster, 'postmaster.pid');
  const [, ...rest] = (await readFile(file, 'utf8')).split('\n');
  await writeFile(file, [UNUSED_PID, ...rest].join('\n'), { flag: 'r+' });
  await rm(path.join(socketDirectory, `.s.PGSQL.${port}.lock`), { force: true });
}
