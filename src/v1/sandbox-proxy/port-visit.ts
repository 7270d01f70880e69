import type { IncomingMessage } from 'node:http';
import { TOKEN_PARAMETER } from '../sandboxes/port-token.js';
import { PORT_COOKIES } from './port-cookie.js';

/** A request to a port of a sandbox, taken apart. */
export interface PortVisit {
  /** Path and query without the token. */
  url: string;
  /** Of the query. */
  token: string | null;
  /** Of our cookie. */
  cookie: string | null;
  /** Of the header. */
  key: string | null;
  /** All other cookies. */
  otherCookies: string;
  /** A browser wants to show it. */
  isPage: boolean;
}

/** Reads what a client presents. Path and the rest of the query stay as they were, character by character. */
export function readPortVisit({
  url = '/',
  method,
  headers,
}: Pick<IncomingMessage, 'url' | 'method' | 'headers'>): PortVisit {
  const [path = '/', ...rest] = (url.startsWith('/') ? url : '/').split('?');
  const parameters = rest.length === 0 ? [] : rest.join('?').split('&');
  const others = parameters.filter((parameter) => !isToken(parameter));
  const cookies = (headers.cookie ?? '').split(/; */).filter((cookie) => cookie !== '');
  const { 'x-session-api-key': key } = headers;
  return {
    url: others.length === 0 ? path : `${path}?${others.join('&')}`,
    token: valueOf(parameters.find(isToken)),
    cookie: valueOf(cookies.find(isOurs)),
    key: typeof key === 'string' ? key : null,
    otherCookies: cookies.filter((cookie) => !isOurs(cookie)).join('; '),
    isPage: method === 'GET' && (headers.accept ?? '').includes('text/html'),
  };
}

function isToken(parameter: string): boolean {
  return parameter.startsWith(`${TOKEN_PARAMETER}=`);
}

function isOurs(cookie: string): boolean {
  return PORT_COOKIES.some((name) => cookie.startsWith(`${name}=`));
}

function valueOf(pair: string | undefined): string | null {
  return pair === undefined ? null : pair.slice(pair.indexOf('=') + 1);
}
