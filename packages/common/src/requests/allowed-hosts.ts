import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopbackHost } from '../http/loopback.js';

/** What a client is told that calls the service by a name that is not its own. */
export const MISDIRECTED =
  'The service does not answer under this host name. Whoever runs it can set PUBLIC_URL, or add the name to ALLOWED_HOSTS.';

interface HostRules {
  /** Where the server listens. */
  listenHost: string;
  /** Host names that the operator gave: `name`, or `*.name` for every name below it. With any, they count everywhere. */
  configured: readonly string[];
  /** Further names by which clients reach it; called for each name that no other rule allows. */
  isOwn?: (name: string) => boolean;
}

/**
 * The host names that a server answers to. A page on the internet can have its own name resolve to this machine (DNS
 * rebinding), and would then be of the same origin as whatever listens here; but it cannot change the name that the
 * browser sends. Addresses are no such names, and `localhost` with what is below it is resolved by browsers themselves.
 *
 * Names are checked where the server listens on loopback only, and wherever the operator has named some: a server that
 * others reach has names (of a service, a container, a load balancer) that it cannot know.
 */
export class AllowedHosts {
  readonly #isChecked: boolean;
  readonly #names: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  readonly #isOwn: (name: string) => boolean;

  constructor({ listenHost, configured, isOwn = () => false }: HostRules) {
    this.#isChecked = configured.length > 0 || isLoopbackHost(listenHost);
    const names = configured.map((name) => name.toLowerCase());
    this.#names = new Set(names.filter((name) => !name.startsWith('*.')));
    this.#suffixes = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1));
    this.#isOwn = isOwn;
  }

  /** Whether a request names this server. One without a `Host` header does: no browser sends it. */
  accepts({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
    if (!this.#isChecked || headers.host === undefined) {
      return true;
    }
    const name = hostName(headers.host);
    return (
      isAddress(name) ||
      isLoopbackHost(name) ||
      this.#names.has(name) ||
      this.#suffixes.some((suffix) => name.endsWith(suffix)) ||
      this.#isOwn(name)
    );
  }
}

/** The name of a `Host` header in lower case, without port and trailing dot; addresses keep their brackets. */
function hostName(header: string): string {
  return header.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isAddress(name: string): boolean {
  return isIP(name) === 4 || (name.startsWith('[') && name.endsWith(']') && isIP(name.slice(1, -1)) === 6);
}
