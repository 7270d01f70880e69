export const PLAIN_COOKIE: string = 'slipway_port';
/** Over TLS: browsers take a cookie of such a name from its very host only (RFC 6265bis, 4.1.3.2). */
export const SECURE_COOKIE: string = '__Host-slipway_port';

/** A `Set-Cookie` that opens a port of a sandbox from now on. */
export function portCookie(token: string, isSecure: boolean): string {
  const attributes = 'Path=/; HttpOnly; SameSite=Lax';
  return isSecure
    ? `${SECURE_COOKIE}=${token}; ${attributes}; Secure`
    : `${PLAIN_COOKIE}=${token}; ${attributes}`;
}
