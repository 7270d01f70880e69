import { isIP, isIPv6 } from 'node:net';
import type { DockerSandboxOptions } from './docker-options.js';

/** How the service gets to the agent server in a container. */
export type SandboxReach =
  /** Both are in one network of the engine. */
  | { by: 'name' }
  /** `hostIp`: where the engine publishes the port; `urlHost`: how that is written in an address. */
  | { by: 'port'; hostIp: string; urlHost: string };

const LOOPBACK = '127.0.0.1';
const EVERY_ADDRESS = '0.0.0.0';

/** Decides how containers are reached. */
export function sandboxReach({
  network,
  listenAddress,
}: Pick<DockerSandboxOptions, 'network' | 'listenAddress'>): SandboxReach {
  if (network !== null) {
    return { by: 'name' };
  }
  const host = listenAddress ?? LOOPBACK;
  // The engine takes no names.
  return {
    by: 'port',
    hostIp: isIP(host) === 0 ? EVERY_ADDRESS : host,
    urlHost: isIPv6(host) ? `[${host}]` : host,
  };
}
