import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** Headers for one connection only (RFC 9110, 7.6.1), besides those that `Connection` names, and those that Node.js handles itself. */
const HOP_BY_HOP = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Headers that `Connection` cannot remove, because they give a message's length and destination. */
const NEVER_HOP_BY_HOP = ['content-length', 'host'];

/** Headers of a message that are forwarded: all but those for the connection that it came on. */
export function endToEndHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').toLowerCase().split(',');
  const dropped = new Set([
    ...HOP_BY_HOP,
    ...named.map((name) => name.trim()).filter((name) => !NEVER_HOP_BY_HOP.includes(name)),
  ]);
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => value !== undefined && !dropped.has(name)),
  );
}

/** Gives the body the same framing, so that the program reads as much as the service did. */
export function framingHeaders({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

/** Names the client and the address it used, after what proxies in front of us said. */
export function forwardedHeaders({ headers, socket }: IncomingMessage): OutgoingHttpHeaders {
  const earlier = headers['x-forwarded-for'];
  const client = socket.remoteAddress ?? '';
  return {
    'x-forwarded-for': earlier === undefined ? client : `${String(earlier)}, ${client}`,
    'x-forwarded-proto': headers['x-forwarded-proto'] ?? 'http',
    'x-forwarded-host': headers['x-forwarded-host'] ?? headers.host ?? '',
  };
}
