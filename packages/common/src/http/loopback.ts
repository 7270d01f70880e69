import { BlockList, isIP } from 'node:net';

/** RFC 6761, section 6.3. */
const LOCAL_NAME = /^(?:[a-z0-9_.-]+\.)?localhost\.?$/i;

/** Node.js looks into IPv6 addresses that hold one of IPv4 (`::ffff:127.0.0.1`) as well. */
const ADDRESSES = new BlockList();
ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
ADDRESSES.addAddress('::1', 'ipv6');

/** Whether a name, or an address with or without brackets, is this machine's loopback; names are not resolved. */
export function isLoopbackHost(host: string): boolean {
  if (LOCAL_NAME.test(host)) {
    return true;
  }
  const address = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const version = isIP(address);
  return version !== 0 && ADDRESSES.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
