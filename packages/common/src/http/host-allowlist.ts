import { BlockList, isIP } from 'node:net';

/** `network` means the operator's networks as well, but nothing of this machine or its cloud. */
export type AddressReach = 'public' | 'network' | 'any';

type Scheme = 'http' | 'https';

interface Rule {
  scheme: Scheme;
  host: string;
  wildcard: boolean;
  port: string;
}

const DEFAULT_PORT: Record<Scheme, string> = { http: '80', https: '443' };

/**
 * Entries: `host` (https, port 443), `host:port`, `*.suffix` with or without a port, or an origin, the only form with
 * http. Others may add names below a wildcard, so it never leads to this machine (`AddressReach`).
 */
export class HostAllowlist {
  private constructor(private readonly rules: readonly Rule[]) {}

  /** @throws Error naming the first entry that has none of the accepted forms. */
  static parse(entries: readonly string[]): HostAllowlist {
    return new HostAllowlist(
      entries
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '')
        .map((entry) => parseRule(entry)),
    );
  }

  allows(url: URL): boolean {
    return this.matching(url).length > 0;
  }

  /** `any` if the host is listed by name, `network` below a wildcard, else `public`. */
  reachOf(url: URL): AddressReach {
    const rules = this.matching(url);
    if (rules.length === 0) {
      return 'public';
    }
    return rules.every(({ wildcard }) => wildcard) ? 'network' : 'any';
  }

  get names(): string[] {
    return [...new Set(this.rules.map(nameOf))];
  }

  /** The name of the entry that allows the address; an entry for the host itself comes first. */
  nameOf(url: URL): string | null {
    const rules = this.matching(url);
    const rule = rules.find(({ wildcard }) => !wildcard) ?? rules[0];
    return rule === undefined ? null : nameOf(rule);
  }

  private matching(url: URL): readonly Rule[] {
    const scheme = schemeOf(url);
    if (!scheme) {
      return [];
    }
    const host = withoutTrailingDot(url.hostname);
    const port = url.port === '' ? DEFAULT_PORT[scheme] : url.port;
    return this.rules.filter(
      (rule) => rule.scheme === scheme && rule.port === port && matchesHost(rule, host),
    );
  }
}

function nameOf({ scheme, host, port, wildcard }: Rule): string {
  return `${wildcard ? '*' : ''}${host}${port === DEFAULT_PORT[scheme] ? '' : `:${port}`}`;
}

function matchesHost(rule: Rule, host: string): boolean {
  if (!rule.wildcard) {
    return rule.host === host;
  }
  return host.length > rule.host.length && host.endsWith(rule.host) && !isIpLiteral(host);
}

function parseRule(entry: string): Rule {
  const wildcard = entry.startsWith('*.');
  const rest = wildcard ? entry.slice(2) : entry;
  const isOrigin = rest.includes('://');
  // The URL parser drops tabs and line breaks, reads a backslash as a slash and keeps an asterisk.
  if (/[\s\\*@?#]/.test(rest) || (wildcard && isOrigin) || (!isOrigin && rest.includes('/'))) {
    throw badEntry(entry);
  }
  const text = isOrigin ? rest : `https://${rest}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  const scheme = url && schemeOf(url);
  if (!url || !scheme || url.hostname === '' || url.pathname !== '/') {
    throw badEntry(entry);
  }
  const host = withoutTrailingDot(url.hostname);
  if (host === '' || (wildcard && isIpLiteral(host))) {
    throw badEntry(entry);
  }
  return {
    scheme,
    host: wildcard ? `.${host}` : host,
    wildcard,
    port: url.port === '' ? DEFAULT_PORT[scheme] : url.port,
  };
}

function schemeOf(url: URL): Scheme | null {
  switch (url.protocol) {
    case 'https:':
      return 'https';
    case 'http:':
      return 'http';
    default:
      return null;
  }
}

function isIpLiteral(host: string): boolean {
  return host.startsWith('[') || isIP(host) !== 0;
}

function withoutTrailingDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

function badEntry(entry: string): Error {
  return new Error(
    `"${entry}" is not a host name, host:port, *.suffix or origin such as https://git.example.com`,
  );
}

export class OutboundAddresses {
  private readonly allowlist: HostAllowlist | null;

  /** @throws Error naming the first malformed entry; null allows every host. */
  constructor(entries: readonly string[] | null) {
    this.allowlist = entries && HostAllowlist.parse(entries);
  }

  /** What is wrong with an address whose server the operator does not allow. ws counts as http. */
  problem(address: string): string | null {
    if (!this.allowlist) {
      return null;
    }
    const dialled = address.replace(/^ws(s?):/i, 'http$1:');
    return URL.canParse(dialled) && this.allowlist.allows(new URL(dialled))
      ? null
      : 'This server may not be used here; OUTBOUND_ALLOWLIST names those that may.';
  }
}

/** RFC 6761, section 6.3. */
const LOCAL_NAME = /^(?:[a-z0-9_.-]+\.)?localhost\.?$/i;

/** Node.js looks into IPv6 addresses that hold one of IPv4 (`::ffff:127.0.0.1`) as well. */
const ADDRESSES = new BlockList();
ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
ADDRESSES.addAddress('::1', 'ipv6');

/** Whether a name, or an address with or without brackets, is this machine's loopback; names are not resolved. */
export function isLoopbackHost(host: string): boolean {
  if (LOCAL_NAME.test(host)) {
    return true;
  }
  const address = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const version = isIP(address);
  return version !== 0 && ADDRESSES.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
