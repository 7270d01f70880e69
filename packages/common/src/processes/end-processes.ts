import { setTimeout as delay } from 'node:timers/promises';
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
/** How long connections and timers that are still open keep a process that is done. */
const EXIT_MS = 250;

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

/** Lists the ids of a process, from our pid namespace inwards to its own. */
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

const ROUNDS = 100;
const ROUND_PAUSE_MS = 5;

export interface ProcessTree {
  root: number | null;
  marker: string;
  user: number | null;
  /** Start time of the root, if the marker was made for it: what is older cannot have it. */
  since?: string | null;
}

export interface TreeView {
  members: ProcessFacts[];
  /** During an execve(2), the kernel does not show whether a process is a member. */
  isUnsure: boolean;
}

/** The root's group and session, what has the marker or the user, and all descendants. Null without `/proc`. */
export function viewTree({ root, marker, user, since = null }: ProcessTree): TreeView | null {
  const processes = readProcesses()?.filter(({ isKernelThread }) => !isKernelThread);
  if (processes === undefined) {
    return null;
  }
  const found = new Set<number>();
  let isUnsure = false;
  for (const { pid, group, session, startTime } of processes) {
    const owner = user === null ? null : userOf(pid);
    if (pid === root || group === root || session === root || (user !== null && owner === user)) {
      found.add(pid);
      continue;
    }
    if (user !== null && owner !== 0 && owner !== process.getuid?.()) {
      // A foreign process may carry the marker: only what root or we started can become the tree's own user.
      continue;
    }
    if (since !== null && Number(startTime) < Number(since)) {
      continue;
    }
    const environment = environmentOf(pid);
    if (environment.some((variable) => variable.startsWith(marker))) {
      found.add(pid);
    }
    // An execve(2) that was over between the two looks has left an environment.
    isUnsure ||= environment.length === 0 && (isBare(pid) || environmentOf(pid).length > 0);
  }
  for (let grown = true; grown;) {
    const children = processes.filter(({ pid, parent }) => found.has(parent) && !found.has(pid));
    children.forEach(({ pid }) => found.add(pid));
    grown = children.length > 0;
  }
  return { members: processes.filter(({ pid }) => found.has(pid) && pid !== process.pid), isUnsure };
}

/**
 * Kills a tree of processes, however often they fork; false if some are left. It misses a process that has no marker,
 * no living parent and no user of its own. Without `/proc`, only the root's group is killed.
 * @param confirm asked between the look at the tree and each signal: this program may have stood still, and its marker and
 *   user may belong to a later tree by then. What it throws ends the work.
 */
export async function endProcesses(
  tree: ProcessTree,
  confirm: () => Promise<void> = () => Promise.resolve(),
): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const view = viewTree(tree);
    if (view === null) {
      await confirm();
      return tree.root !== null && sendSignal(-tree.root, 'SIGKILL');
    }
    const { members, isUnsure } = view;
    if (members.length === 0 && !isUnsure) {
      return true;
    }
    if (members.length > 0) {
      await confirm();
      // Stopped first: a parent that is killed before its child is seen takes the trace to the child with it.
      members.forEach(({ pid }) => sendSignal(pid, 'SIGSTOP'));
      const all = new Set([...members, ...(viewTree(tree)?.members ?? [])].map(({ pid }) => pid));
      await confirm();
      all.forEach((pid) => sendSignal(pid, 'SIGKILL'));
    }
    await delay(ROUND_PAUSE_MS);
  }
  return viewTree(tree)?.members.length === 0;
}

export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/**
 * Ends this process with `status` as soon as nothing keeps it, after a quarter of a second at the latest. process.exit() alone
 * joins the threads of V8, and one that compiles may wait there for a garbage collection that the caller can no longer make:
 * the process then never ends (https://github.com/nodejs/node/issues/54918). None compiles in a process that has nothing to do.
 */
export function exitProcess(status = 0): void {
  process.exitCode = status;
  // oxlint-disable-next-line no-restricted-properties
  setTimeout(() => process.exit(status), EXIT_MS).unref();
}
