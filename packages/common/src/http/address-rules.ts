import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { type AddressReach, isLoopbackHost } from './host-allowlist.js';

const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is;
/** Prefix of IPv4 addresses translated for IPv6-only networks (RFC 6052). */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');

const LOCAL_SUFFIXES = [
  '.localhost',
  '.local',
  '.localdomain',
  '.internal',
  '.intranet',
  '.lan',
  '.svc',
  '.home.arpa',
];

/** Metadata services beside the link-local ones: AWS, Google Cloud and Scaleway over IPv6, Alibaba Cloud, Azure. */
const METADATA = [
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  '100.100.100.200/32',
  '168.63.129.16/32',
].map((range) => ipaddr.parseCIDR(range));

/** RFC 1918, RFC 6598, RFC 4193. */
const PRIVATE_RANGES: readonly string[] = ['private', 'carrierGradeNat', 'uniqueLocal'];

export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Does not name the address, which would map the network. */
export class AddressRefusedError extends Error {
  constructor() {
    super('the name resolves to an address that may not be called');
    this.name = 'AddressRefusedError';
  }
}

/** A `lookup` that passes on only checked addresses: a second DNS answer could differ. */
export function checkedLookup(resolve: ResolveHost, reach: AddressReach): LookupFunction {
  const lookup = callbackify((hostname: string) => checkedAddresses(resolve, hostname, reach));
  return (hostname, options, callback) => {
    lookup(hostname, (error, addresses) => {
      if (error) {
        callback(error, '');
      } else if (options.all) {
        callback(null, addresses);
      } else {
        callback(null, addresses[0].address, addresses[0].family);
      }
    });
  };
}

async function checkedAddresses(
  resolve: ResolveHost,
  hostname: string,
  reach: AddressReach,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(hostname);
  if (!first) {
    throw new Error('the name has no address');
  }
  if (![first, ...others].every(({ address }) => isWithinReach(address, reach))) {
    throw new AddressRefusedError();
  }
  return [first, ...others];
}

function isWithinReach(ip: string, reach: AddressReach): boolean {
  switch (reach) {
    case 'public':
      return isPublicAddress(ip);
    case 'network':
      return isPublicAddress(ip) || isPrivateAddress(ip);
    case 'any':
      return true;
  }
}

/**
 * Whether an IP address is ordinary public unicast; text that is not an address is not. An address that carries an
 * IPv4 address is judged by it where networks translate it, and refused where they tunnel (6to4, Teredo).
 * https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry
 */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) {
    return false;
  }
  const address = ipaddr.parse(ip);
  if (isMetadata(address)) {
    return false;
  }
  if (address instanceof ipaddr.IPv6) {
    return isPublicIpv6(address);
  }
  return address.range() === 'unicast';
}

/** Whether organizations use an IP address within their networks; metadata services of clouds do not count. */
export function isPrivateAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) {
    return false;
  }
  const address = ipaddr.parse(ip);
  const dialled = (address instanceof ipaddr.IPv6 ? translatedIpv4(address) : null) ?? address;
  return !isMetadata(dialled) && PRIVATE_RANGES.includes(dialled.range());
}

function isMetadata(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return METADATA.some(
    ([network, bits]) => address.kind() === network.kind() && address.match(network, bits),
  );
}

function isPublicIpv6(address: ipaddr.IPv6): boolean {
  const embedded = translatedIpv4(address);
  if (embedded) {
    return !isMetadata(embedded) && embedded.range() === 'unicast';
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

/** Whether a host name, as the WHATWG URL parser returns it, can be a public name; it is not resolved. */
export function isPublicHostName(hostname: string): boolean {
  const host = (hostname.endsWith('.') ? hostname.slice(0, -1) : hostname).toLowerCase();
  if (host.startsWith('[') || isIP(host) !== 0 || !host.includes('.')) {
    return false;
  }
  return !LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
}

/**
 * Credentials are refused because addresses are stored and shown in clear, backslashes because URL parsers disagree.
 */
export function addressProblem(address: string, schemes: readonly string[]): string | null {
  if (address === '') {
    return 'Expected an address; this text is empty.';
  }
  const [, scheme, rest = ''] = ABSOLUTE.exec(address) ?? [];
  if (scheme === undefined) {
    return `Expected an address that starts with ${oneOf(schemes.map((name) => `${name}://`))}.`;
  }
  if (!schemes.includes(scheme.toLowerCase())) {
    return `Expected an address of scheme ${oneOf(schemes)}.`;
  }
  if (/[\s\\\p{Cc}]/u.test(address)) {
    return 'Expected an address without white space, backslashes and control characters.';
  }
  // The URL parser skips extra slashes after these schemes, and would take the first part of the path for the host.
  const url = /^[/?#]|^$/.test(rest) ? null : URL.parse(address);
  if (url === null || !isHostName(url.hostname)) {
    return 'Expected an address with a valid host after the scheme.';
  }
  const { username, password, port } = url;
  if (port === '0') {
    return 'Expected an address with a port from 1 to 65535, or none.';
  }
  return username === '' && password === ''
    ? null
    : 'Expected an address without a user name or password in it.';
}

/** Resolvers know no longer ones (RFC 1035, 2.3.4). */
const MAX_HOST_NAME = 253;

function isHostName(hostname: string): boolean {
  const { length } = hostname.replace(/\.$/, '');
  return length > 0 && length <= MAX_HOST_NAME;
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}

/** Names of services in a cluster, which no proxy outside of it knows. */
export const CLUSTER_NAMES: readonly string[] = ['.svc', '.cluster.local'];

/** Follows the rules of https://pkg.go.dev/golang.org/x/net/http/httpproxy, which never proxies loopback. */
export function bypassesProxy(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/\.$/, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? '80' : '443') : url.port;
  return (
    isLoopbackHost(host) ||
    [...CLUSTER_NAMES, ...proxyExemptions(noProxy)].some((entry) => matches(entry, host, port))
  );
}

export function proxyExemptions(noProxy: string): string[] {
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '');
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') {
    return true;
  }
  if (ipaddr.isValidCIDR(entry)) {
    return isInRange(host, entry);
  }
  const withPort = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry);
  const name = withPort?.[1] ?? entry;
  if (withPort && withPort[2] !== port) {
    return false;
  }
  const suffix = name.replace(/^\*?\./, '');
  const belowOnly = suffix !== name;
  return host.endsWith(`.${suffix}`) || (!belowOnly && (host === suffix || host === `[${suffix}]`));
}

/**
 * Adds the host to `no_proxy` as `fetch` knows it, if a range there has it, or it stands there as an address of IPv6 without
 * brackets. Call it before a `fetch`, which reads the variable each time.
 */
export function exemptIfInRange({ hostname }: URL, environment: NodeJS.ProcessEnv): void {
  const noProxy = environment['no_proxy'] ?? environment['NO_PROXY'] ?? '';
  const entries = proxyExemptions(noProxy);
  const isListed = entries.includes('*') || entries.includes(hostname);
  const isNamed = (entry: string): boolean =>
    `[${entry}]` === hostname || (ipaddr.isValidCIDR(entry) && isInRange(hostname, entry));
  if (!isListed && entries.some(isNamed)) {
    environment['no_proxy'] = `${noProxy},${hostname}`;
  }
}

/** Whether a host that is an address, in brackets if of IPv6, is in a range; names are not resolved. */
function isInRange(host: string, range: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const [network, bits] = ipaddr.parseCIDR(range);
  const ip = ipaddr.isValid(address) ? ipaddr.parse(address) : null;
  return ip !== null && ip.kind() === network.kind() && ip.match(network, bits);
}

const KEY_LIKE = /^(?=.*\d)[\w~.%-]{16,}$/;

/** The address without what may be secret: user, query and keys within the path. */
export function shownAddress(address: string): string {
  if (!URL.canParse(address)) {
    return 'no valid address';
  }
  const { protocol, host, pathname } = new URL(address);
  const path = pathname.split('/').map((part) => (KEY_LIKE.test(part) ? '…' : part));
  return `${protocol}//${host}${path.join('/')}`;
}

const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const MAX_PORT = 65_535;

/** What an operator opens to programs that otherwise reach public addresses only. */
type NetworkDestination =
  /** IPv4, as `10.20.0.0/16`. */
  | { kind: 'range'; range: string }
  /** A null `port` stands for all ports. */
  | { kind: 'host'; host: string; port: number | null };

/** Returns null for loopback without a port too, which would open all of this machine's services. */
export function parseDestination(text: string): NetworkDestination | null {
  if (text.includes('/')) {
    return ipaddr.IPv4.isValidCIDR(text) ? { kind: 'range', range: text } : null;
  }
  const [, host = '', digits] = /^([^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? null : Number(digits);
  const isPort = port === null ? !isLoopbackHost(host) : port > 0 && port <= MAX_PORT;
  return HOST.test(host) && isPort ? { kind: 'host', host, port } : null;
}

/** Host and port of an address as such an entry; none for addresses of IPv6, which no entry can name. */
export function destinationsOf(address: string): string[] {
  const url = URL.parse(address.includes('://') ? address : `https://${address}`);
  const entry = url === null ? '' : `${url.hostname}:${url.port || (url.protocol === 'http:' ? 80 : 443)}`;
  return parseDestination(entry) === null ? [] : [entry];
}

/** The IPv6 network of one customer of an internet provider (RFC 6177). */
const IPV6_NETWORK_BITS = 64;

/** Returns the network that tells callers without a key apart. */
export function networkOf(address = ''): string {
  if (!ipaddr.isValid(address)) {
    return address;
  }
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_NETWORK_BITS}`).toString();
}
