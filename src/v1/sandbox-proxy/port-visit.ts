import type { IncomingMessage } from 'node:http';
import { TOKEN_PARAMETER } from '../sandboxes/port-token.js';
import { PLAIN_COOKIE, SECURE_COOKIE } from './port-cookie.js';

/** A request to a port of a sandbox, taken apart. */
export interface PortVisit {
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
export function readPortVisit(
  { url = '/', method, headers }: Pick<IncomingMessage, 'url' | 'method' | 'headers'>,
  isSecure: boolean,
): PortVisit {
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
