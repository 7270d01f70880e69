import type { IncomingMessage } from 'node:http';
import { LINKED_FRAMES } from '@slipway/agent-protocol/linked-frames.js';
import { toConversationId } from '@slipway/agent-protocol/conversation-schemas.js';
import { normalizeTimestamp } from '../event-log.js';

const BASE_URL = 'http://localhost';

export interface SocketRequest {
  /** null: the events of bash commands. */
  conversationId: string | null;
  /** From the query or the header; undefined: the first frame must have it. */
  key: string | undefined;
  /** Whether each event comes with the id of its predecessor in the log, so that a reader notices a gap. */
  linked: boolean;
  resend: { mode: 'none' } | { mode: 'all' } | { mode: 'since'; timestamp: string };
}

/** @returns null if there is no socket at the address */
export function parseSocketRequest(request: IncomingMessage): SocketRequest | null {
  const address = request.url ?? '/';
  // The HTTP parser accepts addresses such as `//` that the URL parser rejects.
  if (!URL.canParse(address, BASE_URL)) {
    return null;
  }
  const url = new URL(address, BASE_URL);
  const [, path, name] = /^\/sockets\/(events|bash-events)(?:\/([^/]+))?\/?$/.exec(url.pathname) ?? [];
  if (path === undefined || (path === 'events') !== (name !== undefined)) {
    return null;
  }
  const header = request.headers['x-session-api-key'];
  return {
    // An id that is not a UUID is kept: no conversation has it, so the lookup fails.
    conversationId: name === undefined ? null : (toConversationId(name) ?? name),
    key: url.searchParams.get('session_api_key') ?? (typeof header === 'string' ? header : undefined),
    linked: isLinked(url.searchParams),
    resend: resendOf(url.searchParams),
  };
}

function isLinked(query: URLSearchParams): boolean {
  return query.get(LINKED_FRAMES.parameter) === LINKED_FRAMES.value;
}

function resendOf(query: URLSearchParams): SocketRequest['resend'] {
  const mode = query.get('resend_mode');
  if (mode === 'since') {
    const timestamp = normalizeTimestamp(query.get('after_timestamp') ?? '');
    return timestamp === null ? { mode: 'all' } : { mode: 'since', timestamp };
  }
  return mode === 'all' || /^(true|1|yes|on)$/i.test(query.get('resend_all') ?? '')
    ? { mode: 'all' }
    : { mode: 'none' };
}

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
