import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopbackHost } from '../http/host-allowlist.js';

export const MISDIRECTED =
  'The service does not answer under this host name. Whoever runs it can set PUBLIC_URL, or add the name to ALLOWED_HOSTS.';

interface HostRules {
  listenHost: string;
  configured: readonly string[];
  /** Called for each name that no other rule allows. */
  isOwn?: (name: string) => boolean;
}

/**
 * The host names that a server answers to, against DNS rebinding: a page cannot change the name that browsers send.
 * Without configured names only loopback servers check, as others cannot know theirs (a service's, a balancer's).
 */
export class AllowedHosts {
  private readonly isChecked: boolean;
  private readonly names: ReadonlySet<string>;
  private readonly suffixes: readonly string[];
  private readonly isOwn: (name: string) => boolean;

  constructor({ listenHost, configured, isOwn = () => false }: HostRules) {
    this.isChecked = configured.length > 0 || isLoopbackHost(listenHost);
    const names = configured.map((name) => name.toLowerCase());
    this.names = new Set(names.filter((name) => !name.startsWith('*.')));
    this.suffixes = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1));
    this.isOwn = isOwn;
  }

  /** Accepts requests without a `Host` header: no browser sends them. */
  accepts({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
    if (!this.isChecked || headers.host === undefined) {
      return true;
    }
    const name = hostName(headers.host);
    return (
      isAddress(name) ||
      isLoopbackHost(name) ||
      this.names.has(name) ||
      this.suffixes.some((suffix) => name.endsWith(suffix)) ||
      this.isOwn(name)
    );
  }
}

/** Strips the port and a trailing dot; addresses keep their brackets. */
function hostName(header: string): string {
  return header.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isAddress(name: string): boolean {
  return isIP(name) === 4 || (name.startsWith('[') && name.endsWith(']') && isIP(name.slice(1, -1)) === 6);
}
