import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';
import { isLoopbackHost } from '@slipway/common/http/loopback.js';
import { parseDestination } from '@slipway/common/http/address-rules.js';

/** The machine's loopback as slirp4netns(1) maps it. */
export const HOST_LOOPBACK = '10.0.2.2';
const NAME_SERVER = '10.0.2.3';

/** https://www.iana.org/assignments/iana-ipv4-special-registry */
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
const OPEN_PRIORITY = 100;
const CLOSED_PRIORITY = 200;

export interface NetworkRules {
  closed: readonly string[];
  opened: readonly OpenedDestination[];
  /** TCP ports of the machine's loopback that it reaches at its own. */
  loopbackPorts: readonly number[];
}

interface OpenedDestination {
  range: string;
  /** A TCP port; null opens everything. */
  port: number | null;
}

/** Names are resolved now, and open nothing if that fails. @throws RangeError for an invalid entry */
export async function networkRules(
  allow: readonly string[],
  ownAddresses: readonly string[],
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<NetworkRules> {
  const opened = (await Promise.all(allow.map(async (entry) => await openedBy(entry, resolve)))).flat();
  const own = ownAddresses.filter((address) => ipaddr.IPv4.isValid(address) && !isLoopbackHost(address));
  return {
    closed: [...NOT_PUBLIC, ...own],
    opened: opened.filter(({ range }) => !isLoopbackRange(range)),
    loopbackPorts: [
      ...new Set(
        opened.flatMap(({ range, port }) => (isLoopbackRange(range) && port !== null ? [port] : [])),
      ),
    ],
  };
}

/**
 * Commands for `ip -batch` before the network is connected. IPsec policies (ip-xfrm(8)) also apply to
 * SO_BINDTODEVICE, SO_DONTROUTE and broadcasts, which skip routes; packet filters are on fewer machines.
 */
export function policyCommands({ closed, opened, loopbackPorts }: NetworkRules): string {
  const exceptions = [
    ...['tcp', 'udp'].map((protocol) => `${NAME_SERVER} proto ${protocol} dport 53`),
    ...loopbackPorts.map((port) => `${HOST_LOOPBACK} proto tcp dport ${port}`),
    ...opened.map(({ range, port }) => `${range}${port === null ? '' : ` proto tcp dport ${port}`}`),
  ];
  return [
    'link set lo up',
    ...[...new Set(exceptions)].map(
      (exception) => `xfrm policy add dst ${exception} dir out priority ${OPEN_PRIORITY}`,
    ),
    ...closed.map((range) => `xfrm policy add dst ${range} dir out action block priority ${CLOSED_PRIORITY}`),
  ].join('\n');
}

/** Keeps the machine's search domains and names the network's own server. */
export function resolverConfiguration(machine: string): string {
  const kept = machine.split('\n').filter((line) => /^\s*(search|domain|options)\s/.test(line));
  return [...kept, `nameserver ${NAME_SERVER}`, ''].join('\n');
}

async function openedBy(
  entry: string,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<OpenedDestination[]> {
  const destination = parseDestination(entry);
  if (destination === null) {
    throw new RangeError(`${entry} is no destination`);
  }
  if (destination.kind === 'range') {
    const range = ipaddr.IPv4.networkAddressFromCIDR(destination.range).toString();
    return [{ range: `${range}/${destination.range.split('/')[1]}`, port: null }];
  }
  const { host, port } = destination;
  return (await addressesOf(host, resolve)).map((range) => ({ range, port }));
}

async function addressesOf(
  host: string,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<string[]> {
  if (host === 'localhost') {
    return ['127.0.0.1'];
  }
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) {
    return [host];
  }
  const found = await resolve(host).catch(() => []);
  return found.flatMap(({ address, family }) => (family === 4 ? [address] : []));
}

function isLoopbackRange(range: string): boolean {
  const [address = ''] = range.split('/');
  return isLoopbackHost(address);
}
