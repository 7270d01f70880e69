import { SandboxForwarder } from '@slipway/reverse-proxy/sandbox-forwarder.js';
import type { OpenConnections } from '../../auth/open-connections.js';
import { isSessionCookie } from '../../auth/sessions/session-cookie.js';
import { DomainError } from '../../common/errors/domain-error.js';

/**
 * A forwarder whose clients end with their access, and whose refusals are problems of the API.
 * @param unreachable what clients are told when the program gives no answer
 */
export function newForwarder(unreachable: string, open: OpenConnections): SandboxForwarder {
  return new SandboxForwarder({
    hold: (client, userId) => open.add(client, { userId, keyId: null }),
    isOwnCookie: isSessionCookie,
    tooMany: (most, isProven) =>
      new DomainError(
        'rate_limited',
        `${most} requests to this program of the sandbox are under way, the most allowed${isProven ? '' : ' without its key in X-Session-API-Key'}; wait until one has ended.`,
        { retryAfterSeconds: 1 },
      ),
    unreachable: (cause) => new DomainError('upstream_error', unreachable, { cause }),
  });
}
