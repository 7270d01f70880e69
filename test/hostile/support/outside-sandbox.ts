import { OWN_ADDRESS } from '../../support/isolated-processes.js';
import { foundInMemory } from '../../support/process-memory.js';
import type { HostileWorld } from './hostile-world.js';

/** Which processes of a sandbox have a credential in memory, environment or arguments; they have to have its placeholder. */
export async function inProcesses(
  world: HostileWorld,
  sandboxId: string,
  { secrets, placeholder }: { secrets: readonly string[]; placeholder: string },
): Promise<string[]> {
  const found = await foundInMemory(world.sandboxProcesses(sandboxId), [...secrets, placeholder]);
  if (!found.includes(placeholder)) {
    throw new Error('the memory of the sandbox cannot be searched');
  }
  return found.some((each) => each !== placeholder) ? ['a process of the sandbox has it'] : [];
}

/** @throws Error on a machine that has none */
export function ownAddress(): string {
  if (OWN_ADDRESS === undefined) {
    throw new Error('this machine has no address but loopback');
  }
  return OWN_ADDRESS;
}
