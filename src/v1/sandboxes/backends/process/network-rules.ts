import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';
import { parseDestination } from '../../../../common/http/network-destination.js';

/** The address of this machine's loopback in a sandbox's network, as slirp4netns defines it (slirp4netns(1)). */
export const HOST_LOOPBACK = '10.0.2.2';
/** Where slirp4netns answers DNS queries. */
const NAME_SERVER = '10.0.2.3';

/** What sandboxes never reach by default: https://www.iana.org/assignments/iana-ipv4-special-registry. */
const NOT_PUBLIC = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
const MAX_PREFIX = 32;

/** Which destinations a sandbox reaches besides public addresses. */
export interface NetworkRules {
  /** IPv4 ranges that it does not reach. */
  blocked: readonly string[];
  /** TCP ports of this machine's loopback that it reaches at its own. */
  loopbackPorts: readonly number[];
}

/** An IPv4 range: the address as a number, and the length of its prefix. */
interface Range {
  base: number;
  prefix: number;
}

/**
 * What a sandbox may reach. Entries that lead to this machine's loopback open one port; other private addresses are
 * opened whole. Names are resolved now, and those that cannot be resolved open nothing.
 *
 * @param allow entries as `parseDestination` reads them
 * @param ownAddresses this machine's, which a sandbox does not reach either
 */
export async function networkRules(
  allow: readonly string[],
  ownAddresses: readonly string[],
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<NetworkRules> {
  const ranges: Range[] = [];
  const loopbackPorts = new Set<number>();
  const open = async (entry: string): Promise<void> => {
    const destination = parseDestination(entry);
    if (destination === null) {
      throw new RangeError(`${entry} is no destination`);
    }
    if (destination.kind === 'range') {
      ranges.push(toRange(destination.range));
      return;
    }
    const { host, port } = destination;
    for (const address of await addressesOf(host, resolve)) {
      if (!address.startsWith('127.')) {
        ranges.push(toRange(`${address}/${MAX_PREFIX}`));
      } else if (port !== null) {
        loopbackPorts.add(port);
      }
    }
  };
  await Promise.all(allow.map(open));
  const own = ownAddresses.filter((address) => ipaddr.IPv4.isValid(address) && !address.startsWith('127.'));
  const blocked = [...NOT_PUBLIC, ...own.map((address) => `${address}/${MAX_PREFIX}`)].flatMap((range) =>
    without(toRange(range), ranges),
  );
  return {
    blocked: [...new Set(blocked.map(toText))],
    loopbackPorts: [...loopbackPorts].toSorted((a, b) => a - b),
  };
}

/**
 * Commands for `ip -batch` that apply the rules inside a network namespace, before it is connected. The gateway stands
 * for this machine's loopback, so only the opened ports of it may be addressed.
 */
export function routingCommands({ blocked, loopbackPorts }: NetworkRules): string {
  const gateway = `to ${HOST_LOOPBACK}`;
  return [
    'link set lo up',
    ...blocked.map((range) => `route add prohibit ${range}`),
    ...loopbackPorts.map((port) => `rule add pref 100 ${gateway} ipproto tcp dport ${port} lookup main`),
    ...['tcp', 'udp', 'icmp'].map((protocol) => `rule add pref 200 ${gateway} ipproto ${protocol} prohibit`),
  ].join('\n');
}

/** The `/etc/resolv.conf` of a sandbox: the machine's own search domains, and the name server of its network. */
export function resolverConfiguration(machine: string): string {
  const kept = machine.split('\n').filter((line) => /^\s*(search|domain|options)\s/.test(line));
  return [...kept, `nameserver ${NAME_SERVER}`, ''].join('\n');
}

async function addressesOf(
  host: string,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<string[]> {
  if (host === 'localhost' || ipaddr.IPv4.isValidFourPartDecimal(host)) {
    return [host === 'localhost' ? '127.0.0.1' : host];
  }
  const found = await resolve(host).catch(() => []);
  return found.flatMap(({ address, family }) => (family === 4 ? [address] : []));
}

function toRange(text: string): Range {
  const [address, prefix] = ipaddr.IPv4.parseCIDR(text);
  const number = address.octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const size = 2 ** (MAX_PREFIX - prefix);
  return { base: number - (number % size), prefix };
}

function toText({ base, prefix }: Range): string {
  const octets = [24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256);
  return `${octets.join('.')}/${prefix}`;
}

/** What is left of a range without the holes, halved until each piece is inside a hole or touches none. */
function without(range: Range, holes: readonly Range[]): Range[] {
  if (holes.some((hole) => contains(hole, range))) {
    return [];
  }
  const inside = holes.filter((hole) => contains(range, hole));
  if (inside.length === 0) {
    return [range];
  }
  const prefix = range.prefix + 1;
  const upper = range.base + 2 ** (MAX_PREFIX - prefix);
  return [range.base, upper].flatMap((base) => without({ base, prefix }, inside));
}

function contains(outer: Range, inner: Range): boolean {
  const end = outer.base + 2 ** (MAX_PREFIX - outer.prefix);
  return outer.prefix <= inner.prefix && outer.base <= inner.base && inner.base < end;
}
