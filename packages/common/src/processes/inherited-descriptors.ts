import type { IOType } from 'node:child_process';
import { openSync, readdirSync, readFileSync } from 'node:fs';

/** open(2), Linux, as `/proc/PID/fdinfo/FD` writes it. */
const O_CLOEXEC = 0o2_000_000;

type Stdio = IOType | number;

/** Descriptors that this process was started with and would pass on, and what replaces them. */
let inherited: { numbers: number[]; nothing: number } | null = null;

/** `/dev/null` replaces inherited descriptors; with `'ignore'`, libuv would leave those above 2 alone. */
export function withoutInherited(stdio: readonly Stdio[]): Stdio[] {
  inherited ??= { numbers: findInherited(), nothing: openSync('/dev/null', 'r+') };
  const { numbers, nothing } = inherited;
  const length = Math.max(stdio.length, ...numbers.map((number) => number + 1));
  const taken = new Set(numbers);
  return Array.from({ length }, (_, number) => stdio[number] ?? (taken.has(number) ? nothing : 'ignore'));
}

function findInherited(): number[] {
  try {
    return readdirSync('/proc/self/fdinfo')
      .map(Number)
      .filter((number) => number > 2 && isPassedOn(number))
      .toSorted((one, other) => one - other);
  } catch {
    return [];
  }
}

function isPassedOn(number: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false;
  }
}
