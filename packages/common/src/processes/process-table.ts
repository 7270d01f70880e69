import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessFacts {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Clock ticks since boot; with the pid and the boot id it identifies one process for good. */
  startTime: string;
  isKernelThread: boolean;
}

/** proc(5), counted from the state, the third field in the manual. */
const FLAGS_FIELD = 6;
const START_TIME_FIELD = 19;
const KERNEL_THREAD = 0x0020_0000;

/** All living processes that we can see; zombies count as dead. Null where there is no `/proc`. */
export function readProcesses(): ProcessFacts[] | null {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => readProcess(Number(name)) ?? []);
  } catch {
    return null;
  }
}

export function readProcess(pid: number): ProcessFacts | null {
  return parseProcess(pid, readIfThere(`/proc/${pid}/stat`));
}

export function parseProcess(pid: number, stat: string): ProcessFacts | null {
  const fields = fieldsOf(stat);
  const [state, parent, group, session] = fields;
  if (!state || state === 'Z' || state === 'X') {
    return null;
  }
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    startTime: fields[START_TIME_FIELD] ?? '',
    isKernelThread: (Number(fields[FLAGS_FIELD]) & KERNEL_THREAD) !== 0,
  };
}

/** Children of a process with one thread, zombies perhaps among them (proc(5), `/proc/PID/task/TID/children`). */
export function childrenOf(pid: number): number[] {
  try {
    const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return listed.split(' ').filter(Boolean).map(Number);
  } catch {
    return (readProcesses() ?? []).filter(({ parent }) => parent === pid).map((child) => child.pid);
  }
}

export function startTimeOf(pid: number): string | null {
  return fieldsOf(readIfThere(`/proc/${pid}/stat`))[START_TIME_FIELD] ?? null;
}

/** The environment that a process was started with, as `NAME=value`; empty where we may not see it. */
export function environmentOf(pid: number): string[] {
  return readIfThere(`/proc/${pid}/environ`)
    .split('\0')
    .filter((variable) => variable !== '');
}

/** Whether a living process has no arguments, as in the middle of an execve(2). */
export function isBare(pid: number): boolean {
  return readIfThere(`/proc/${pid}/cmdline`) === '' && readProcess(pid) !== null;
}

export function userOf(pid: number): number | null {
  const user = /^Uid:\t(\d+)/m.exec(readIfThere(`/proc/${pid}/status`))?.[1];
  return user === undefined ? null : Number(user);
}

/** From our pid namespace inwards to the process's own. */
export function namespacePids(pid: number): number[] {
  const pids = /^NSpid:\t(.+)$/m.exec(readIfThere(`/proc/${pid}/status`))?.[1];
  return pids?.trim().split(/\s+/).map(Number) ?? [];
}

export function bootId(): string {
  return readIfThere('/proc/sys/kernel/random/boot_id').trim();
}

/** The name before the state stands in brackets and may contain anything, brackets too. */
function fieldsOf(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Empty for processes that have just ended, and for files of other users' processes. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
