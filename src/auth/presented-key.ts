import type { IncomingHttpHeaders } from 'node:http';

/**
 * The key a request presents. Of several headers the first of X-Session-API-Key, X-Access-Token and
 * Authorization (Bearer) decides alone.
 */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-session-api-key'] ?? headers['x-access-token'];
  if (direct !== undefined) {
    return typeof direct === 'string' ? direct : null;
  }
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}
