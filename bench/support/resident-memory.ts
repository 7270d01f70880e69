import { execFileSync } from 'node:child_process';

/** Resident memory of a process in MB (of 1,000,000 bytes); `ps` reports KiB on Linux and macOS alike. */
export function residentMemoryMb(pid: number): number {
  const kib = Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' }));
  return (kib * 1024) / 1_000_000;
}
