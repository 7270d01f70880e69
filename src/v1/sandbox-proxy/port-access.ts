import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { opensPorts, TOKEN_PARAMETER } from '../sandboxes/session-key.js';
import type { ProxiedRequest } from './sandbox-forwarder.js';

const PLAIN_COOKIE: string = 'slipway_port';
/** Over TLS: browsers take a cookie of such a name from its very host only (RFC 6265bis, 4.1.3.2). */
const SECURE_COOKIE: string = '__Host-slipway_port';

/** A `Set-Cookie` that opens a port of a sandbox from now on. */
export function portCookie(token: string, isSecure: boolean): string {
  const attributes = 'Path=/; HttpOnly; SameSite=Lax';
  return isSecure
    ? `${SECURE_COOKIE}=${token}; ${attributes}; Secure`
    : `${PLAIN_COOKIE}=${token}; ${attributes}`;
}

/** A request to a port of a sandbox, taken apart. */
export interface PortRequest {
  /** Path and query without the token. */
  url: string;
  /** Of the query. */
  token: string | null;
  /** Of the header. */
  key: string | null;
  /** What our cookie may be: pages of other ports can set it for this one as well. */
  cookies: string[];
  /** All other cookies. */
  otherCookies: string;
  /** Where the page is that sent it, as far as the browser says. */
  origin: string | null;
  /** `Sec-Fetch-Site` (Fetch Metadata Request Headers, 2.3). */
  site: string | null;
  /** It goes to the address in the browser's window. */
  isNavigation: boolean;
  /** A browser wants to show it. */
  isPage: boolean;
}

/**
 * Reads what a client presents.
 *
 * @param isSecure whether clients use TLS: then only the cookie counts that no other host can set
 */
export function parsePortRequest(
  { url = '/', method, headers }: Pick<IncomingMessage, 'url' | 'method' | 'headers'>,
  isSecure: boolean,
): PortRequest {
  const [path = '/', ...rest] = (url.startsWith('/') ? url : '/').split('?');
  const parameters = rest.length === 0 ? [] : rest.join('?').split('&');
  const others = parameters.filter((parameter) => !isToken(parameter));
  const cookies = (headers.cookie ?? '').split(/; */).filter((cookie) => cookie !== '');
  const looks = method === 'GET' || method === 'HEAD';
  return {
    url: others.length === 0 ? path : `${path}?${others.join('&')}`,
    token: parameters.filter(isToken).map(valueOf)[0] ?? null,
    key: textOf(headers['x-session-api-key']),
    cookies: cookies
      .filter((cookie) => nameOf(cookie) === (isSecure ? SECURE_COOKIE : PLAIN_COOKIE))
      .map(valueOf),
    otherCookies: cookies
      .filter((cookie) => ![SECURE_COOKIE, PLAIN_COOKIE].includes(nameOf(cookie)))
      .join('; '),
    origin: headers.origin ?? null,
    site: textOf(headers['sec-fetch-site']),
    isNavigation:
      looks &&
      headers['sec-fetch-mode'] === 'navigate' &&
      // Frames navigate too.
      [undefined, 'document'].includes(textOf(headers['sec-fetch-dest']) ?? undefined),
    isPage: method === 'GET' && (headers.accept ?? '').includes('text/html'),
  };
}

function isToken(parameter: string): boolean {
  return nameOf(parameter) === TOKEN_PARAMETER;
}

function nameOf(pair: string): string {
  return pair.split('=', 1)[0] ?? '';
}

function valueOf(pair: string): string {
  return pair.slice(pair.indexOf('=') + 1);
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null;
}

/**
 * Whether a request may go to a port: `closed` without what opens it; `foreign` when a page of another site makes it
 * with the cookie of ours. All ports below one domain are one site to a browser, so `SameSite` does not keep them apart.
 *
 * @param origin of the port's own pages
 */
export function judgePortAccess(
  visit: PortRequest,
  sessionKey: string,
  origin: string,
): 'open' | 'closed' | 'foreign' {
  const opens = (secret: string | null): boolean => secret !== null && opensPorts(secret, sessionKey);
  if (opens(visit.token) || opens(visit.key)) {
    return 'open';
  }
  if (!visit.cookies.some(opens)) {
    return 'closed';
  }
  return isForeign(visit, origin) ? 'foreign' : 'open';
}

function isForeign({ site, origin: from, isNavigation }: PortRequest, origin: string): boolean {
  if (isNavigation) {
    return false;
  }
  // Browsers that say nothing of the site say the origin where it matters: of what changes something, and of WebSockets.
  return site === null ? from !== null && from !== origin : site !== 'same-origin' && site !== 'none';
}

/** Would speak for more than this one port. */
const FOREIGN_HEADERS = ['clear-site-data', 'strict-transport-security'];

/**
 * The way of a request to a port. To the program it all happens at the address where the service reaches it: servers for
 * development refuse names that they do not know, and compare `Origin` with `Host`.
 *
 * @param target where the service reaches the program
 * @param origin where clients reach it
 */
export function proxyToPort(
  target: string,
  origin: string,
  visit: Pick<PortRequest, 'url' | 'otherCookies'>,
): ProxiedRequest {
  const inner = new URL(target).origin;
  return {
    target,
    path: visit.url,
    rewriteRequestHeaders: (headers) => {
      // What opened the port is not for what listens there.
      delete headers['x-session-api-key'];
      delete headers['cookie'];
      if (visit.otherCookies !== '') {
        headers['cookie'] = visit.otherCookies;
      }
      // It would contradict Host, by which some programs make addresses and judge origins.
      delete headers['x-forwarded-host'];
      delete headers['x-forwarded-proto'];
      move(headers, 'origin', origin, inner);
      move(headers, 'referer', origin, inner);
    },
    rewriteResponseHeaders: (headers) => {
      for (const name of FOREIGN_HEADERS) {
        delete headers[name];
      }
      move(headers, 'location', inner, origin);
      move(headers, 'location', inner.replace('http:', 'https:'), origin);
      move(headers, 'access-control-allow-origin', inner, origin);
      const cookies = headers['set-cookie'];
      if (cookies !== undefined) {
        headers['set-cookie'] = [cookies].flat().map((cookie) => withoutDomain(cookie));
      }
    },
  };
}

/** Puts another origin into a header that names this one, alone or with a path. */
function move(headers: OutgoingHttpHeaders, name: string, from: string, to: string): void {
  const value = headers[name];
  if (typeof value === 'string' && (value === from || value.startsWith(`${from}/`))) {
    headers[name] = `${to}${value.slice(from.length)}`;
  }
}

/** Cookies of one port are not for others. */
function withoutDomain(cookie: string): string {
  return cookie
    .split(';')
    .filter((part) => !/^\s*domain\s*=/i.test(part))
    .join(';');
}
