import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

let seed = 0;
let drawn = 0;

/** From now on pauses are those of this seed, in this order. */
export function seedPauses(given: number): void {
  seed = given;
  drawn = 0;
}

/** Some time between two moments, so that faults hit all kinds of work. */
export async function waitBetween(leastMs: number, mostMs: number): Promise<void> {
  drawn += 1;
  const share = createHash('sha256').update(`${seed} ${drawn}`).digest().readUInt32BE() / 2 ** 32;
  await wait(leastMs + share * (mostMs - leastMs));
}
