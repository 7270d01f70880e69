import { hash, timingSafeEqual } from 'node:crypto';

/** Name of the query parameter that opens a port. */
export const TOKEN_PARAMETER = 'slipway_token';

/**
 * What opens the ports of a sandbox, and nothing else of it, for as long as there is the sandbox. Made from its session
 * key, which it does not tell.
 */
export function portToken(sessionKey: string): string {
  return hash('sha256', `ports of the sandbox with the key ${sessionKey}`, 'base64url');
}

/** Whether what a client presents is the token, or the session key itself; takes as long for every wrong one. */
export function opensPorts(presented: string, sessionKey: string): boolean {
  return [portToken(sessionKey), sessionKey].some((secret) =>
    timingSafeEqual(hash('sha256', presented, 'buffer'), hash('sha256', secret, 'buffer')),
  );
}
