import { isIP } from 'node:net';

/** Where a request goes: a host as the URL parser writes it (an IPv6 address without brackets), and a port. */
export interface Target {
  host: string;
  port: number;
  isTls: boolean;
  isAddress: boolean;
}

const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^\s/\\@?#%:[\]]+)(?::(\d{1,5}))?$/i;
const ABSOLUTE_FORM = /^http:\/\/([^/?#\\]+)((?:[/?][^#]*)?)$/i;
const MAX_NAME = 253;
const MAX_LABEL = 63;
const MAX_PORT = 65_535;

/**
 * The host and port of `name:port`, as CONNECT and `Host` have them; null for anything else. The URL parser lower-cases
 * names, writes them in punycode, and turns every form of an IPv4 address (octal, hexadecimal, one number) into four numbers;
 * a trailing dot is removed here, so that one host has one name.
 */
export function parseAuthority(
  text: string,
  { isTls, defaultPort }: { isTls: boolean; defaultPort: number | null },
): Target | null {
  const [, name, digits] = AUTHORITY.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const host = name === undefined ? null : normalHost(name);
  if (host === null || port === null || port < 1 || port > MAX_PORT) {
    return null;
  }
  return { host, port, isTls, isAddress: isIP(host) !== 0 };
}

/** The target and the path, as it was written, of a request line `GET http://host/path`; null for anything else. */
export function parseAbsoluteForm(url: string): { target: Target; path: string } | null {
  const [, authority, rest = ''] = ABSOLUTE_FORM.exec(url) ?? [];
  const target =
    authority === undefined ? null : parseAuthority(authority, { isTls: false, defaultPort: 80 });
  return target === null ? null : { target, path: rest.startsWith('/') ? rest : `/${rest}` };
}

function normalHost(name: string): string | null {
  const hostname = URL.parse(`http://${name}/`)?.hostname.replace(/\.$/, '') ?? '';
  if (hostname.startsWith('[')) {
    return hostname.slice(1, -1);
  }
  const labels = hostname.split('.');
  const isName =
    hostname.length <= MAX_NAME && labels.every(({ length }) => length > 0 && length <= MAX_LABEL);
  return isName ? hostname : null;
}

/** As it stands in a URL and in `Host`: with brackets where it is an IPv6 address, without a default port. */
export function shownTarget({ host, port, isTls }: Target): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === (isTls ? 443 : 80) ? name : `${name}:${port}`;
}

/** Unreserved characters, and those that mean the same in a path whether they are escaped or not. */
const PLAIN_IN_PATH = /^[\w.~!$&'()*+,;=:@-]$/;
const DOTS = /^\.{1,2}(;.*)?$/;

/**
 * The path in one spelling, for comparison with rules: an encoded slash stays encoded, and so never equals one of a rule.
 * Null where a server may read another path than the one that is compared: dot segments, however they are written, empty
 * segments, backslashes, control characters, an escape of an escape.
 */
export function canonicalPath(pathAndQuery: string): string | null {
  const [path = ''] = pathAndQuery.split('?', 1);
  if (!path.startsWith('/') || /[^!-~]|\\|\/\/|%(?![0-9a-f]{2})|%(?:25|5c|[01][0-9a-f]|7f)/i.test(path)) {
    return null;
  }
  const isClimbing = path
    .replaceAll(/%2f/gi, '/')
    .replaceAll(/%2e/gi, '.')
    .replaceAll(/%3b/gi, ';')
    .split('/')
    .some(
      (segment, index, { length }) =>
        DOTS.test(segment) || (segment === '' && index > 0 && index < length - 1),
    );
  return isClimbing
    ? null
    : path.replaceAll(/%[0-9a-f]{2}/gi, (escape) => {
        const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
        return PLAIN_IN_PATH.test(character) ? character : escape.toUpperCase();
      });
}

/** Whether a path, canonical or null, is one of a rule's: exact, or a prefix where the rule ends in `*`. */
export function matchesPath(rule: string, path: string | null): boolean {
  if (path === null) {
    return false;
  }
  const isPrefix = rule.endsWith('*');
  const written = isPrefix ? rule.slice(0, -1) : rule;
  const wanted = canonicalPath(written) ?? written;
  return isPrefix ? path.startsWith(wanted) : path === wanted;
}
