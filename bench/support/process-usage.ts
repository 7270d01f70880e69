import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readProcesses } from '@slipway/common/processes/end-processes.js';

/** Linux counts in hundredths of a second on every machine (USER_HZ, see proc_pid_stat(5)). */
const TICK_MS = 10;

/** Processor time that a process has used so far, milliseconds; null where there is no `/proc`. */
export function processorTimeMs(pid: number): number | null {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) {
    return null;
  }
  // The name in the second field may contain anything; the other fields follow its last bracket.
  const text = readFileSync(file, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Resident memory of a process in MB (of 1,000,000 bytes); `ps` reports KiB on Linux and macOS alike. */
export function residentMemoryMb(pid: number): number {
  const kib = Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' }));
  return (kib * 1024) / 1_000_000;
}

/** Memory of a process and all its descendants, in MB (of 1,000,000 bytes). */
interface TreeMemory {
  /** Counts shared pages for each process. */
  rss: number;
  /** Divides shared pages among the processes that share them: what another such tree would cost. */
  pss: number;
}

/** A process and all its descendants. */
export function processTree(root: number): number[] {
  const processes = readProcesses() ?? [];
  const tree = new Set([root]);
  // Children have larger pids than their parents, except after a wrap-around, which the next round covers.
  for (let before = 0; before !== tree.size;) {
    before = tree.size;
    processes.filter(({ parent }) => tree.has(parent)).forEach(({ pid }) => tree.add(pid));
  }
  return [...tree];
}

/** Returns null if the kernel does not tell us (not Linux, or no permission). */
export function treeMemory(root: number): TreeMemory | null {
  try {
    const texts = processTree(root).map((pid) => readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
    return { rss: sum(texts, /^Rss:\s+(\d+) kB/m), pss: sum(texts, /^Pss:\s+(\d+) kB/m) };
  } catch {
    return null;
  }
}

function sum(texts: readonly string[], field: RegExp): number {
  return texts.reduce((total, text) => total + (Number(field.exec(text)?.[1] ?? 0) * 1024) / 1_000_000, 0);
}
