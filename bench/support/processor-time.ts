import { existsSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second, whatever the machine (USER_HZ, see proc_pid_stat(5)). */
const TICK_MS = 10;

/** Processor time that a process has used so far, milliseconds; null where the system does not tell it this way. */
export function processorTimeMs(pid: number): number | null {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) {
    return null;
  }
  // The name in the second field may hold anything; what follows starts after its last bracket.
  const text = readFileSync(file, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
