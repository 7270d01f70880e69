import { isIPv6 } from 'node:net';

export const LOOPBACK = '127.0.0.1';

/** The address of a program that listens on this port. */
export function programAddress(listenAddress: string | null, port: number): string {
  const host = listenAddress ?? LOOPBACK;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
