import type Docker from 'dockerode';
import ipaddr from 'ipaddr.js';
import { jsonList, jsonText } from '../../src/common/json-access.js';

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
