import ipaddr from 'ipaddr.js';
import { isLoopbackHost } from '@slipway/common/http/loopback.js';

const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const MAX_PORT = 65_535;

/** What an operator opens to programs that otherwise reach public addresses only. */
type NetworkDestination =
  /** IPv4, as `10.20.0.0/16`. */
  | { kind: 'range'; range: string }
  /** A null `port` stands for all ports. */
  | { kind: 'host'; host: string; port: number | null };

/** Null also for loopback without a port, which would open all of this machine's services. */
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
