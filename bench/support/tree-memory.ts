import { readFileSync } from 'node:fs';
import { readProcesses } from '../../src/common/processes/process-table.js';

/** What a process and all that it started hold, in MB (of 1,000,000 bytes). */
export interface TreeMemory {
  /** With shared pages counted by each. */
  rss: number;
  /** With shared pages divided among those that share them: what another such tree would cost. */
  pss: number;
}

/** Null where the kernel does not tell (not Linux, or not ours to see). */
export function treeMemory(root: number): TreeMemory | null {
  const processes = readProcesses() ?? [];
  const tree = new Set([root]);
  // Children have larger pids than their parents but for a wrap-around, which is seen in the next round.
  for (let before = 0; before !== tree.size;) {
    before = tree.size;
    processes.filter(({ parent }) => tree.has(parent)).forEach(({ pid }) => tree.add(pid));
  }
  try {
    const texts = [...tree].map((pid) => readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
    return { rss: sum(texts, /^Rss:\s+(\d+) kB/m), pss: sum(texts, /^Pss:\s+(\d+) kB/m) };
  } catch {
    return null;
  }
}

function sum(texts: readonly string[], field: RegExp): number {
  return texts.reduce((total, text) => total + (Number(field.exec(text)?.[1] ?? 0) * 1024) / 1_000_000, 0);
}
