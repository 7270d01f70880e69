import type { IncomingHttpHeaders } from 'node:http';

/** The first of X-Session-API-Key, X-Access-Token and Authorization (Bearer) that is there decides alone. */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-session-api-key'] ?? headers['x-access-token'];
  return direct === undefined ? bearerToken(headers) : single(direct);
}

/** For routes where `X-Session-API-Key` may carry a sandbox's key: the other two headers win. */
export function presentedBesideSandboxKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-access-token'];
  return direct === undefined ? (bearerToken(headers) ?? presentedKey(headers)) : single(direct);
}

/** The bearer token (RFC 6750), or null. A JSON Web Token is not meant for us: proxies that sign people in add one. */
export function bearerToken(headers: IncomingHttpHeaders): string | null {
  return /^Bearer +(?!eyJ[\w-]*\.)(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}

function single(value: string | string[]): string | null {
  return typeof value === 'string' ? value : null;
}
