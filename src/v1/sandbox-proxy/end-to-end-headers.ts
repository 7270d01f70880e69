import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

/** For one connection only (RFC 9110, 7.6.1), besides those that `Connection` names; and what Node.js answers itself. */
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

/** What a message says of its own length and goal is not for `Connection` to name. */
const ALWAYS = ['content-length', 'host'];

/** Headers of a message that are passed on: all but those for the connection that it came on. */
export function endToEndHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').toLowerCase().split(',');
  const dropped = new Set([
    ...HOP_BY_HOP,
    ...named.map((name) => name.trim()).filter((name) => !ALWAYS.includes(name)),
  ]);
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => value !== undefined && !dropped.has(name)),
  );
}
