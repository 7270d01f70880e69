import { readdirSync, readFileSync } from 'node:fs';

/** Of all processes of the machine. */
export function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        // It has just ended.
        return '';
      }
    });
}
