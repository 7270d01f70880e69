import type { IncomingMessage } from 'node:http';
import { toConversationId } from '../conversations/conversation-id.js';
import { normalizeTimestamp } from '../event-log.js';

export interface SocketLimits {
  /** How long a client may wait with its first frame. */
  authTimeoutMs: number;
  pingMs: number;
  /** A client that takes nothing for so long is dropped. */
  stallMs: number;
  /** Per conversation. */
  maxSubscribers: number;
}

export const SOCKET_LIMITS: SocketLimits = {
  authTimeoutMs: 10_000,
  pingMs: 30_000,
  stallMs: 30_000,
  maxSubscribers: 100,
};

const BASE = 'http://localhost';

/** What a client wants of its socket. */
export interface SocketRequest {
  /** `null`: events of bash commands. */
  conversationId: string | null;
  /** From the query or the header; undefined: the first frame will tell. */
  key: string | undefined;
  resend: { mode: 'none' } | { mode: 'all' } | { mode: 'since'; timestamp: string };
}

/** @returns null when the address is no socket of ours */
export function parseSocketRequest(request: IncomingMessage): SocketRequest | null {
  const address = request.url ?? '/';
  // `//` and the like are addresses to the parser of requests, but not to that of URLs.
  if (!URL.canParse(address, BASE)) {
    return null;
  }
  const url = new URL(address, BASE);
  const [, path, name] = /^\/sockets\/(events|bash-events)(?:\/([^/]+))?\/?$/.exec(url.pathname) ?? [];
  if (path === undefined || (path === 'events') !== (name !== undefined)) {
    return null;
  }
  const header = request.headers['x-session-api-key'];
  return {
    // What is no id is an id that no conversation has.
    conversationId: name === undefined ? null : (toConversationId(name) ?? name),
    key: url.searchParams.get('session_api_key') ?? (typeof header === 'string' ? header : undefined),
    resend: resendOf(url.searchParams),
  };
}

function resendOf(query: URLSearchParams): SocketRequest['resend'] {
  const mode = query.get('resend_mode');
  if (mode === 'since') {
    // A plus sign that was not escaped arrives as a blank.
    const text = (query.get('after_timestamp') ?? '').replace(/ (\d\d:?\d\d)$/, '+$1');
    const timestamp = normalizeTimestamp(text);
    return timestamp === null ? { mode: 'all' } : { mode: 'since', timestamp };
  }
  return mode === 'all' || /^(true|1|yes|on)$/i.test(query.get('resend_all') ?? '')
    ? { mode: 'all' }
    : { mode: 'none' };
}

/** Position of the first entry that the client wants. */
export function firstPosition(
  entries: readonly { timestamp: string }[],
  resend: SocketRequest['resend'],
): number {
  if (resend.mode === 'all') {
    return 0;
  }
  if (resend.mode === 'none') {
    return entries.length;
  }
  const { timestamp } = resend;
  const position = entries.findIndex((entry) => entry.timestamp >= timestamp);
  return position === -1 ? entries.length : position;
}
