import { opensPorts } from '../sandboxes/port-token.js';
import type { PortVisit } from './port-visit.js';

/**
 * Whether a request may go to a port: `closed` without what opens it; `foreign` when a page of another site makes it
 * with the cookie of ours. All ports below one domain are one site to a browser, so `SameSite` does not keep them apart.
 *
 * @param origin of the port's own pages
 */
export function judgeVisit(
  visit: PortVisit,
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

function isForeign({ site, origin: from, isNavigation }: PortVisit, origin: string): boolean {
  if (isNavigation) {
    return false;
  }
  // Browsers that say nothing of the site say the origin where it matters: of what changes something, and of WebSockets.
  return site === null ? from !== null && from !== origin : site !== 'same-origin' && site !== 'none';
}
