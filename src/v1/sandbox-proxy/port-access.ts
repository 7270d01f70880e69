import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { requestOrigin, requireSandboxAddress } from '@slipway/sandboxes/sandbox-address.js';
import { isSessionCookie } from '../../auth/sessions/session-cookie.js';
import { opensPorts, TOKEN_PARAMETER } from '../sandboxes/session-key.js';
import { isCredential } from '@slipway/reverse-proxy/forwarded-headers.js';
import type { ProxiedRequest } from '@slipway/reverse-proxy/sandbox-forwarder.js';

const PLAIN_COOKIE: string = 'slipway_port';
/** Browsers accept a cookie with this prefix only from its own host (RFC 6265bis, 4.1.3.2); it needs TLS. */
const SECURE_COOKIE: string = '__Host-slipway_port';
/** These would apply to more than this one port. */
const FORBIDDEN_RESPONSE_HEADERS = ['clear-site-data', 'strict-transport-security'];

export interface PortRequest {
  /** Path and query without the token. */
  url: string;
  token: string | null;
  key: string | null;
  /** Pages of other ports can set our cookie for this port too. */
  cookies: string[];
  otherCookies: string;
  /** Origin of the page that asks; null when the browser does not name it. */
  origin: string | null;
  /** `Sec-Fetch-Site` (Fetch Metadata Request Headers, 2.3). */
  site: string | null;
  isNavigation: boolean;
  acceptsPage: boolean;
}

/** Over TLS, only the cookie that no other host can set counts. */
export function parsePortRequest(
  { url = '/', method, headers }: Pick<IncomingMessage, 'url' | 'method' | 'headers'>,
  isSecure: boolean,
): PortRequest {
  const [path = '/', ...rest] = (url.startsWith('/') ? url : '/').split('?');
  const parameters = rest.length === 0 ? [] : rest.join('?').split('&');
  const others = parameters.filter((parameter) => !isToken(parameter));
  const cookies = (headers.cookie ?? '').split(/; */).filter((cookie) => cookie !== '');
  const isRead = method === 'GET' || method === 'HEAD';
  return {
    url: others.length === 0 ? path : `${path}?${others.join('&')}`,
    token: parameters.filter(isToken).map(valueOf)[0] ?? null,
    key: singleValue(headers['x-session-api-key']),
    cookies: cookies
      .filter((cookie) => nameOf(cookie) === (isSecure ? SECURE_COOKIE : PLAIN_COOKIE))
      .map(valueOf),
    otherCookies: cookies
      .filter(
        (cookie) =>
          ![SECURE_COOKIE, PLAIN_COOKIE].includes(nameOf(cookie)) && !isCredential(cookie, isSessionCookie),
      )
      .join('; '),
    origin: headers.origin ?? null,
    site: singleValue(headers['sec-fetch-site']),
    isNavigation:
      isRead &&
      headers['sec-fetch-mode'] === 'navigate' &&
      // Frames navigate too.
      [undefined, 'document'].includes(singleValue(headers['sec-fetch-dest']) ?? undefined),
    acceptsPage: method === 'GET' && (headers.accept ?? '').includes('text/html'),
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

function singleValue(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null;
}

/**
 * `cross-site`: another site sent our cookie. Browsers take all ports below one domain for one site, so `SameSite`
 * does not keep them apart.
 */
export function judgePortAccess(
  request: PortRequest,
  sessionKey: string,
  origin: string,
): 'granted' | 'unauthorized' | 'cross-site' {
  const opens = (secret: string | null): boolean => secret !== null && opensPorts(secret, sessionKey);
  if (opens(request.token) || opens(request.key)) {
    return 'granted';
  }
  if (!request.cookies.some(opens)) {
    return 'unauthorized';
  }
  return isCrossSite(request, origin) ? 'cross-site' : 'granted';
}

function isCrossSite({ site, origin: sender, isNavigation }: PortRequest, origin: string): boolean {
  if (isNavigation) {
    return false;
  }
  // Browsers without Sec-Fetch-Site send Origin where it matters: with changes and WebSockets.
  return site === null ? sender !== null && sender !== origin : site !== 'same-origin' && site !== 'none';
}

export function portCookie(token: string, isSecure: boolean): string {
  const attributes = 'Path=/; HttpOnly; SameSite=Lax';
  return isSecure
    ? `${SECURE_COOKIE}=${token}; ${attributes}; Secure`
    : `${PLAIN_COOKIE}=${token}; ${attributes}`;
}

/** Programs see `target` as address: development servers refuse unknown hosts, and compare `Origin` with `Host`. */
export function proxyToPort(
  target: string,
  origin: string,
  request: Pick<PortRequest, 'url' | 'otherCookies'>,
): Omit<ProxiedRequest, 'ownerId'> {
  const inner = requestOrigin(requireSandboxAddress(target));
  return {
    target,
    path: request.url,
    isProven: true,
    rewriteRequestHeaders: (headers) => {
      // Credentials for the port itself.
      delete headers['x-session-api-key'];
      delete headers['cookie'];
      if (request.otherCookies !== '') {
        headers['cookie'] = request.otherCookies;
      }
      // These would contradict Host, and some programs build addresses from them or check origins with them.
      delete headers['x-forwarded-host'];
      delete headers['x-forwarded-proto'];
      replaceOrigin(headers, 'origin', origin, inner);
      replaceOrigin(headers, 'referer', origin, inner);
    },
    rewriteResponseHeaders: (headers) => {
      for (const name of FORBIDDEN_RESPONSE_HEADERS) {
        delete headers[name];
      }
      replaceOrigin(headers, 'location', inner, origin);
      replaceOrigin(headers, 'location', inner.replace('http:', 'https:'), origin);
      replaceOrigin(headers, 'access-control-allow-origin', inner, origin);
      const cookies = headers['set-cookie'];
      if (cookies !== undefined) {
        headers['set-cookie'] = [cookies].flat().map((cookie) => withoutDomain(cookie));
      }
    },
  };
}

function replaceOrigin(headers: OutgoingHttpHeaders, name: string, from: string, to: string): void {
  const value = headers[name];
  if (typeof value === 'string' && (value === from || value.startsWith(`${from}/`))) {
    headers[name] = `${to}${value.slice(from.length)}`;
  }
}

/** Other ports must not get the cookies of this one. */
function withoutDomain(cookie: string): string {
  return cookie
    .split(';')
    .filter((part) => !/^\s*domain\s*=/i.test(part))
    .join(';');
}
