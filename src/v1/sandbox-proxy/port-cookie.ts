/** Names of the cookie: over TLS a browser takes the first one from that very host only (RFC 6265bis, 4.1.3.2). */
export const PORT_COOKIES = ['__Host-slipway_port', 'slipway_port'] as const;

/** A `Set-Cookie` that opens a port of a sandbox from now on. Requests that other sites make do not carry it. */
export function portCookie(token: string, isSecure: boolean): string {
  const [secure, plain] = PORT_COOKIES;
  const attributes = 'Path=/; HttpOnly; SameSite=Lax';
  return isSecure ? `${secure}=${token}; ${attributes}; Secure` : `${plain}=${token}; ${attributes}`;
}
