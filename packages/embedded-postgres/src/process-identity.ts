import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode, unlessCode } from '@slipway/common/errors/error-message.js';
import { parseProcess } from '@slipway/common/processes/end-processes.js';

/** No system assigns this id, so PostgreSQL takes the file for a dead server's. */
const UNUSED_PID = 2_147_483_647;

type ProcessIdentity = Record<'startedAt' | 'command', string>;

/** Returns null when there is no such process, or when it is a zombie. */
export function processIdentity(pid: number): ProcessIdentity | null {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

const read = (name: string): string => readFileSync(`/proc/${name}`, 'utf8');

function fromProc(pid: number): ProcessIdentity | null {
  try {
    const facts = parseProcess(pid, read(`${pid}/stat`));
    const command = read(`${pid}/cmdline`).split('\0').join(' ').trimEnd();
    // A process that is ending loses its command line before it becomes a zombie; kernel threads have none.
    return facts === null || command === ''
      ? null
      : { startedAt: `${read('sys/kernel/random/boot_id').trim()}/${facts.startTime}`, command };
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errorCode(error) ?? '')) {
      return null;
    }
    throw error;
  }
}

function fromPs(pid: number): ProcessIdentity | null {
  const args = ['-ww', '-p', `${pid}`, '-o', 'stat=', '-o', 'lstart=', '-o', 'command='];
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };
  const { stdout, error } = spawnSync('ps', args, { encoding: 'utf8', env });
  if (error) {
    throw error;
  }
  const found = parsePsLine(stdout);
  return found?.state.startsWith('Z') ? null : found;
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

interface PostmasterPid {
  pid: number;
  /** The folder of the server's data. */
  cluster: string;
  socketDirectory: string | null;
}

/** The server that claims this cluster; it may be gone: see {@link isPostmasterOf}. */
export async function readPostmasterPid(cluster: string): Promise<PostmasterPid | null> {
  const text = await unlessCode('ENOENT', readFile(path.join(cluster, 'postmaster.pid'), 'utf8'));
  return text === null ? null : parsePostmasterPid(text);
}

/** PostgreSQL's `src/include/utils/pidfile.h` lists the lines of `postmaster.pid`. */
export function parsePostmasterPid(text: string): PostmasterPid | null {
  const [first, cluster = '', , , socketDirectory = ''] = text.split('\n');
  const pid = Number(first);
  return Number.isInteger(pid) && pid > 0 ? { pid, cluster, socketDirectory: socketDirectory || null } : null;
}

/** Marks the server as gone, under the start lock. The file leads a new server to old shared memory and workers. */
export async function disownPostmasterPid(cluster: string, sockets: string, port: number): Promise<void> {
  const file = path.join(cluster, 'postmaster.pid');
  const [, ...rest] = (await readFile(file, 'utf8')).split('\n');
  await writeFile(file, [UNUSED_PID, ...rest].join('\n'), { flag: 'r+' });
  await rm(path.join(sockets, `.s.PGSQL.${port}.lock`), { force: true });
}
