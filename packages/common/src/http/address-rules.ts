import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import ipaddr from 'ipaddr.js';

const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is;
/** Well-known prefix of IPv4 addresses translated for IPv6-only networks. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');

/** Suffixes of names that mean something only inside one machine, network or cluster. */
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

/**
 * Addresses that clouds serve the credentials of their machines at, besides link-local ones: AWS, Google Cloud and
 * Scaleway over IPv6, Alibaba Cloud, Azure. Some are in private networks, one looks public.
 */
const METADATA = [
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  '100.100.100.200/32',
  '168.63.129.16/32',
].map((range) => ipaddr.parseCIDR(range));

/** Ranges that networks of an organization use (RFC 1918, RFC 6598, RFC 4193). */
const PRIVATE_RANGES: readonly string[] = ['private', 'carrierGradeNat', 'uniqueLocal'];

/**
 * Which addresses a name may resolve to: `public` ones, those of a `network` of the operator's as well (but nothing of
 * this machine or its cloud), or `any`.
 */
export type AddressReach = 'public' | 'network' | 'any';

/** Resolves a host name to all of its addresses. */
export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>;

/** A name resolved to an address that may not be called. Does not say which one, which would map the network. */
export class AddressRefusedError extends Error {
  constructor() {
    super('the name resolves to an address that may not be called');
    this.name = 'AddressRefusedError';
  }
}

/**
 * The `lookup` of a connector. Resolves once and passes on only what it has checked, so that the address that is dialled
 * is the one that was checked (a second DNS answer could differ). One address out of reach refuses the whole name.
 */
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
 * Whether an IP address (in text form, as DNS returns it) is ordinary public unicast.
 *
 * Loopback, private (RFC 1918, ULA), link-local (cloud metadata included), carrier-grade NAT, documentation,
 * benchmarking, multicast, reserved and unspecified addresses are not, nor is what clouds serve to their machines. Addresses that carry an IPv4 address are judged
 * by that where the network translates them (`::ffff:0:0/96`, `64:ff9b::/96`, RFC 6052), and refused where they tunnel
 * (6to4, Teredo). Text that is not an address is not public.
 *
 * Ranges: https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry.
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

/**
 * Whether an IP address is one that organizations use within their networks. Loopback, link-local, unspecified and the
 * like are not, and neither is what clouds serve to their machines in such ranges.
 */
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

/**
 * Whether a host name, as the WHATWG URL parser returns it, can be a name of the public internet: at least two
 * labels, no IP literal (the parser has already normalised decimal, octal and hexadecimal notations), none of the local
 * suffixes. What the name resolves to is another question.
 */
export function isPublicHostName(hostname: string): boolean {
  const host = (hostname.endsWith('.') ? hostname.slice(0, -1) : hostname).toLowerCase();
  if (host.startsWith('[') || isIP(host) !== 0 || !host.includes('.')) {
    return false;
  }
  return !LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
}

/**
 * What is wrong with a text as an absolute address of one of the schemes, in one sentence; null when nothing is.
 *
 * Credentials in the address are refused because addresses are stored and shown in clear; white space and
 * backslashes because URL parsers disagree about them, and so about the host.
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
  if (/^[/?#]|^$/.test(rest) || !URL.canParse(address)) {
    return 'Expected an address with a valid host after the scheme.';
  }
  const { username, password } = new URL(address);
  return username === '' && password === ''
    ? null
    : 'Expected an address without a user name or password in it.';
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}

/**
 * Whether `NO_PROXY` exempts an address. Entries are separated by commas or blanks: `*`, a domain (itself and every name
 * below it), `.domain` or `*.domain` (only names below it), each optionally with `:port`. curl and Go read it the same
 * way (https://pkg.go.dev/golang.org/x/net/http/httpproxy); address ranges are not supported.
 */
export function bypassesProxy(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/\.$/, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? '80' : '443') : url.port;
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => matches(entry, host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') {
    return true;
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

/** Parts of a path that look like keys: some services have them there. */
const KEY_LIKE = /^(?=.*\d)[\w~.%-]{16,}$/;

/** An address for people to recognise, without what may be secret in it: user, query and keys within the path. */
export function shownAddress(address: string): string {
  if (!URL.canParse(address)) {
    return 'no valid address';
  }
  const { protocol, host, pathname } = new URL(address);
  const path = pathname.split('/').map((part) => (KEY_LIKE.test(part) ? '…' : part));
  return `${protocol}//${host}${path.join('/')}`;
}
