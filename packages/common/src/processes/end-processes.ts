import { setTimeout as delay } from 'node:timers/promises';
import { environmentOf, isBare, type ProcessFacts, readProcesses, userOf } from './process-table.js';

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
    isUnsure ||= environment.length === 0 && isBare(pid);
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
 *
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
