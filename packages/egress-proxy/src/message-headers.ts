import type { IncomingMessage } from 'node:http';
import type { HeaderLines } from './injection.js';
import { EGRESS_HEADER } from './refusal.js';
import { parseAuthority, shownTarget, type Target } from './target.js';

/** RFC 9110, 7.6.1, and what old programs send to proxies. */
const HOP_BY_HOP = new Set([
  'connection',
  'proxy-connection',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-authentication-info',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
/** A second one would be read by some servers, and the first one by others. */
const SINGLE = ['host', 'authorization', 'content-length', 'transfer-encoding', 'proxy-authorization'];
/** By which a request asks for values in another form, or in parts; Apache reads `Request-Range` as `Range`. */
const UNMASKABLE = ['accept-encoding', 'sec-websocket-extensions', 'range', 'request-range'];
const WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

export function headerLines({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): HeaderLines {
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : [],
  );
}

/** In characters, as a measure of what a request that waits occupies. */
export function headLength({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, { length }) => sum + length, url.length);
}

/** What is wrong with a request that Node.js' parser let pass: two servers could read it differently. Null: nothing. */
export function headerProblem(
  request: IncomingMessage,
  target: Target,
  defaultPort = target.isTls ? 443 : 80,
): string | null {
  const lines = headerLines(request);
  const repeated = SINGLE.find((name) => valuesOf(lines, name).length > 1);
  if (repeated !== undefined) {
    return `it has two headers ${repeated}`;
  }
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return `its transfer-encoding is "${coding}"`;
  }
  if (coding !== undefined && request.headers['content-length'] !== undefined) {
    return 'it has both content-length and transfer-encoding';
  }
  const { host } = request.headers;
  if (host === undefined) {
    return request.httpVersion === '1.0' ? null : 'it names no host';
  }
  const named = parseAuthority(host, { isTls: target.isTls, defaultPort });
  return named?.host === target.host && named.port === target.port ? null : 'its Host is another one';
}

interface Sending {
  target: Target;
  /** Its answer is read: for values that come back, and for what it cost. */
  isRead: boolean;
  isUpgrade: boolean;
  /** With a credential of the sandbox or none. */
  isOwnOnly: boolean;
}

/** The headers that go on to the host: those of the request without what concerns this connection alone. */
export function sentHeaders(
  request: IncomingMessage,
  { target, isRead, isUpgrade, isOwnOnly }: Sending,
): HeaderLines {
  const lines = headerLines(request);
  const dropped = new Set([...HOP_BY_HOP, ...namedByConnection(lines), 'host', 'expect']);
  if (isRead) {
    UNMASKABLE.forEach((name) => dropped.add(name));
  }
  if (isOwnOnly) {
    // A session may be that of a stranger. Programs keep cookies of answers without being told, so it is no reason to refuse.
    dropped.add('cookie');
  }
  dropped.delete('content-length');
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return [
    ['Host', shownTarget(target)],
    ...lines.filter(([name]) => !dropped.has(name.toLowerCase())),
    ...(isRead ? [['Accept-Encoding', 'identity'] as const] : []),
    ...(isUpgrade ? [['Connection', 'Upgrade'] as const, ['Upgrade', 'websocket'] as const] : []),
    ...(coding === undefined ? [] : [['Transfer-Encoding', 'chunked'] as const]),
    // Without it, Node.js would announce a body.
    ...(length === undefined && coding === undefined && !WITHOUT_BODY.has(request.method ?? 'GET')
      ? [['Content-Length', '0'] as const]
      : []),
  ];
}

/** The headers that go back to the sandbox; only this proxy says that it has refused something. */
export function answeredHeaders(response: IncomingMessage, without: readonly string[] = []): HeaderLines {
  const lines = headerLines(response);
  const dropped = new Set([...HOP_BY_HOP, ...namedByConnection(lines), EGRESS_HEADER, ...without]);
  return lines.filter(([name]) => !dropped.has(name.toLowerCase()));
}

function namedByConnection(lines: HeaderLines): string[] {
  return valuesOf(lines, 'connection').flatMap((value) =>
    value.split(',').map((name) => name.trim().toLowerCase()),
  );
}

function valuesOf(lines: HeaderLines, wanted: string): string[] {
  return lines.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The credential of a sandbox, `http://ID:CREDENTIAL@proxy`, as programs send it; null for anything else. */
export function proxyCredential({
  headers,
}: IncomingMessage): { sandbox: string; credential: string } | null {
  const [, encoded] = /^basic\s+([a-z0-9+/]+={0,2})\s*$/i.exec(headers['proxy-authorization'] ?? '') ?? [];
  const [, sandbox, credential] =
    /^([^:]{1,128}):([!-~]{1,512})$/.exec(Buffer.from(encoded ?? '', 'base64').toString('utf8')) ?? [];
  return sandbox === undefined || credential === undefined ? null : { sandbox, credential };
}
