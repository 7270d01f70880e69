import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { SandboxBackendError } from '../sandbox-backend.js';

/** Users, and groups of the same numbers, for sandboxes when the service is root. */
export interface UserRange {
  first: number;
  count: number;
}

/** Beyond what distributions and engines assign; the second range fits containers with 65536 numbers. */
const RANGES: readonly UserRange[] = [
  { first: 0x7000_0000, count: 0x0800_0000 },
  { first: 30_000, count: 30_000 },
];

/** Null when the service is not root. @throws SandboxBackendError when it is root and there are no other users */
export async function findSandboxUsers(): Promise<UserRange | null> {
  if (process.getuid?.() !== 0) {
    return null;
  }
  const maps = ['/proc/self/uid_map', '/proc/self/gid_map'].map(async (file) => await readFile(file, 'utf8'));
  const users = usableUserRange(...(await Promise.all(maps)));
  if (users === null) {
    throw new SandboxBackendError(
      'The service runs as root where no other user exists that sandboxes could run as: run it as another user.',
    );
  }
  return users;
}

/** The first range that `/proc/self/uid_map` and `gid_map` map completely; null when there is none. */
export function usableUserRange(...maps: string[]): UserRange | null {
  return RANGES.find((range) => maps.every((map) => parseMap(map).some(contains(range)))) ?? null;
}

/** user_namespaces(7): first number inside, first number outside, count. */
function parseMap(map: string): UserRange[] {
  return map
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([first, , count]) => (first === undefined || count === undefined ? [] : [{ first, count }]));
}

function contains(inner: UserRange): (outer: UserRange) => boolean {
  return (outer) => outer.first <= inner.first && outer.first + outer.count >= inner.first + inner.count;
}

/** A user for a sandbox, the same for the same id unless another sandbox has it. */
export function pickSandboxUser(id: string, { first, count }: UserRange, taken: ReadonlySet<number>): number {
  const start = createHash('sha256').update(id).digest().readUInt32BE() % count;
  for (let step = 0; step < count; step += 1) {
    const user = first + ((start + step) % count);
    if (!taken.has(user)) {
      return user;
    }
  }
  throw new RangeError('every user of the range is taken');
}

export function isInRange(user: number, { first, count }: UserRange): boolean {
  return user >= first && user < first + count;
}
