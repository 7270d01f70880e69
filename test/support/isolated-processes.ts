import { spawnSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';

const NEEDED = [
  ['bwrap', '--version'],
  ['slirp4netns', '--version'],
  ['ip', '-V'],
  ['curl', '--version'],
] as const;

/** Loopback is the sandbox's own, so a host outside of it needs another address of this machine. */
export const OWN_ADDRESS = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

/** Whether processes can have networks of their own here. */
export function hasIsolatedProcesses(): boolean {
  return NEEDED.every(([program, flag]) => spawnSync(program, [flag]).status === 0);
}
