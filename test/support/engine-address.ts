import type Docker from 'dockerode';
import ipaddr from 'ipaddr.js';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { engineEndpoint } from '../../packages/sandboxes/src/docker/engine.js';
import { Relay } from './relay.js';

const DEFAULT_ENGINE = 'unix:///var/run/docker.sock';

/**
 * The address at which containers in the engine's default network reach this machine, null when that cannot be known: its
 * gateway, by default the first address of its subnet.
 */
export async function bridgeAddress(engine: Docker): Promise<string | null> {
  const bridge: unknown = await engine.getNetwork('bridge').inspect();
  const config = jsonList(bridge, 'IPAM', 'Config')[0];
  const subnet = jsonText(config, 'Subnet') ?? '';
  const gateway = jsonText(config, 'Gateway');
  if (gateway !== null || !ipaddr.IPv4.isValidCIDR(subnet)) {
    return gateway;
  }
  const octets = ipaddr.IPv4.networkAddressFromCIDR(subnet).octets;
  return octets.with(3, (octets[3] ?? 0) + 1).join('.');
}

/** A relay in front of the engine, so that a test can take the engine away. */
export async function engineRelay(dockerHost: string | null): Promise<Relay> {
  const { socketPath, host, port } = engineEndpoint(dockerHost ?? DEFAULT_ENGINE);
  return await Relay.before(socketPath === undefined ? { host, port: port ?? 0 } : { path: socketPath });
}
