import type { OutgoingHttpHeaders } from 'node:http';
import type { Passage } from './passage.js';
import type { PortVisit } from './port-visit.js';

/** Would speak for more than this one port. */
const FOREIGN_HEADERS = ['clear-site-data', 'strict-transport-security'];

/**
 * The way of a request to a port. To the program it all happens at the address where the service reaches it: servers for
 * development refuse names that they do not know, and compare `Origin` with `Host`.
 *
 * @param target where the service reaches the program
 * @param origin where clients reach it
 */
export function portPassage(
  target: string,
  origin: string,
  visit: Pick<PortVisit, 'url' | 'otherCookies'>,
): Passage {
  const inner = new URL(target).origin;
  return {
    target,
    path: visit.url,
    toProgram: (headers) => {
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
    toClient: (headers) => {
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
