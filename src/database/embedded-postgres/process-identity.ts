import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { errorCode } from './error-code.js';

/** What tells a process from a later one with the same number. */
export interface ProcessIdentity {
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
