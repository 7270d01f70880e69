import ipaddr from 'ipaddr.js';

/** Well-known prefix of IPv4 addresses translated for IPv6-only networks. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');

/**
 * Whether an IP address (text form, as DNS answers it) is ordinary public unicast.
 *
 * Loopback, private (RFC 1918, ULA), link-local (cloud metadata included), carrier-grade NAT, documentation,
 * benchmarking, multicast, reserved and unspecified addresses are not. Addresses that carry an IPv4 address
 * are judged by it where the network translates them (`::ffff:0:0/96`, `64:ff9b::/96`, RFC 6052) and refused
 * where they tunnel (6to4, Teredo). Text that is not an address is not public.
 *
 * Ranges: https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry.
 */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) {
    return false;
  }
  const address = ipaddr.parse(ip);
  if (address instanceof ipaddr.IPv6) {
    return isPublicIpv6(address);
  }
  return address.range() === 'unicast';
}

function isPublicIpv6(address: ipaddr.IPv6): boolean {
  const embedded = translatedIpv4(address);
  if (embedded) {
    return embedded.range() === 'unicast';
  }
  // Global unicast is 2000::/3 so far; ipaddr.js calls everything it does not list "unicast".
  return address.range() === 'unicast' && (address.parts[0] ?? 0) >> 13 === 1;
}

function translatedIpv4(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  if (address.isIPv4MappedAddress()) {
    return address.toIPv4Address();
  }
  if (address.match(NAT64, 96)) {
    return new ipaddr.IPv4(address.toByteArray().slice(12));
  }
  return null;
}
