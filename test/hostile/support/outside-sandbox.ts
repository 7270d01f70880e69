import { execFile } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { foundInMemory } from '../../support/process-memory.js';
import type { HostileWorld } from './hostile-world.js';

const run = promisify(execFile);

/** Which processes of a sandbox have a credential in memory, environment or arguments; they have to have its placeholder. */
export async function inProcesses(
  world: HostileWorld,
  sandboxId: string,
  { secrets, placeholder }: { secrets: readonly string[]; placeholder: string },
): Promise<string[]> {
  const pids = world.sandboxProcesses(sandboxId);
  const looks = pids.map((pid) => foundInMemory(pid, [...secrets, placeholder]));
  const found = (await Promise.all(looks)).flat();
  if (!found.includes(placeholder)) {
    throw new Error('the memory of the sandbox cannot be searched');
  }
  return found.some((each) => each !== placeholder) ? ['a process of the sandbox has it'] : [];
}

/** Whether files of sandboxes have a credential. */
export async function filesWith({ dataDir }: HostileWorld, secrets: readonly string[]): Promise<string[]> {
  const patterns = secrets.flatMap((secret) => ['-e', secret]);
  // The agent still writes: files may come and go while it is looked through them.
  const { stdout } = await run('grep', ['-rslF', ...patterns, path.join(dataDir, 'sandboxes')]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout === '' ? [] : ['a file of the sandbox has it'];
}

/** Loopback is the sandbox's own, so a host outside of it has another address of this machine. */
export function ownAddress(): string {
  const found = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal);
  if (found === undefined) {
    throw new Error('this machine has no address but loopback');
  }
  return found.address;
}
