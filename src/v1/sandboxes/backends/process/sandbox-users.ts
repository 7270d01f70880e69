import { createHash } from 'node:crypto';

/** Numbers of users (and of groups alike) that sandboxes run as when the service is root. */
export interface UserRange {
  first: number;
  count: number;
}

/**
 * Beyond what distributions, systemd and container engines give away; where a container maps only the usual 65536
 * numbers, below systemd's dynamic ones.
 */
const RANGES: readonly UserRange[] = [
  { first: 0x7000_0000, count: 0x0800_0000 },
  { first: 30_000, count: 30_000 },
];

/**
 * The first range of which this user namespace knows every number.
 *
 * @param maps texts of `/proc/self/uid_map` and `/proc/self/gid_map`
 * @returns null when there is none
 */
export function usableUsers(...maps: string[]): UserRange | null {
  return RANGES.find((range) => maps.every((map) => parseMap(map).some(contains(range)))) ?? null;
}

/** A user for a sandbox, the same for the same id as long as no other sandbox has it. */
export function chooseUser(id: string, { first, count }: UserRange, taken: ReadonlySet<number>): number {
  const start = createHash('sha256').update(id).digest().readUInt32BE() % count;
  for (let step = 0; step < count; step += 1) {
    const user = first + ((start + step) % count);
    if (!taken.has(user)) {
      return user;
    }
  }
  throw new RangeError('every user of the range is taken');
}

export function isOfRange(user: number, { first, count }: UserRange): boolean {
  return user >= first && user < first + count;
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
