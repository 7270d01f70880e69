import { isIPv6 } from 'node:net';

export const LOOPBACK = '127.0.0.1';

/** The address of a program that listens on this port. */
export function programAddress(listenAddress: string | null, port: number): string {
  const host = listenAddress ?? LOOPBACK;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The addresses of ports, by their names. */
export function programAddresses(
  listenAddress: string | null,
  ports: Readonly<Record<string, number>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(ports).map(([name, port]) => [name, programAddress(listenAddress, port)]),
  );
}
