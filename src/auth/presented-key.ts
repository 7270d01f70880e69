import type { IncomingHttpHeaders } from 'node:http';

/**
 * The key a request presents. Of several headers the first of X-Session-API-Key, X-Access-Token and
 * Authorization (Bearer) decides alone.
 */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-session-api-key'] ?? headers['x-access-token'];
  return direct === undefined ? bearerToken(headers) : text(direct);
}

/**
 * The user's key where `X-Session-API-Key` may carry a sandbox's key beside it: the other two headers come first then.
 */
export function presentedBesideSandboxKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-access-token'];
  if (direct !== undefined) {
    return text(direct);
  }
  return headers.authorization === undefined ? presentedKey(headers) : bearerToken(headers);
}

function bearerToken(headers: IncomingHttpHeaders): string | null {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}

function text(value: string | string[]): string | null {
  return typeof value === 'string' ? value : null;
}
