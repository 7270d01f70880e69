import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  type RequestOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { SharedLimit } from '@slipway/common/shared-limit.js';
import {
  requestOrigin,
  requireSandboxAddress,
  type SandboxAddress,
} from '@slipway/sandboxes/sandbox-address.js';
import { connectionOptions } from '@slipway/sandboxes/sandbox-connection.js';
import {
  endToEndHeaders,
  forwardedHeaders,
  framingHeaders,
  type HeaderRewrite,
  type IsOwnCookie,
  responseHeaders,
  responseStatus,
} from './forwarded-headers.js';
import { JoinedSocket, type SocketEnd } from './joined-socket.js';

/** Agent servers answer some requests only after long work, such as a large clone. */
const RESPONSE_TIMEOUT_MS = 15 * 60_000;
/** A client's disconnect goes unnoticed for as long, because its socket is not read during the handshake. */
const HANDSHAKE_TIMEOUT_MS = 30_000;
const REFUSED_LINGER_MS = 1_000;
/** Each request or WebSocket takes up two connections. */
const MAX_PER_PROGRAM = 256;
/** Callers without a key are counted separately, so that they cannot keep the owner out. */
const MAX_UNPROVEN = 64;
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

export interface ProxiedRequest {
  /** Id of the sandbox's owner. */
  ownerId: string;
  /** `http://host:port` or `unix:/absolute/path`. */
  target: string;
  /** Shared by proven callers; without it, each request opens a connection. */
  connections?: Agent;
  path: string;
  rewriteRequestHeaders: HeaderRewrite;
  rewriteResponseHeaders: HeaderRewrite;
  /** Whether the caller has proven that the sandbox is theirs. */
  isProven: boolean;
  onClientData?: () => void;
  /** Replaces the request's method and body, which has already been read. */
  inner?: { method: string; body: string };
}

export interface ForwarderOptions {
  /** Hears of each client whose request is under way, and of the owner of the sandbox that it reads. */
  hold: (client: Writable, ownerId: string) => void;
  isOwnCookie: IsOwnCookie;
  /** Error for a client beyond the most requests to one program. */
  tooMany: (most: number, isProven: boolean) => Error;
  /** Error for a client when the program gives no answer that can be passed on. */
  unreachable: (cause: unknown) => Error;
}

interface ProgramResponse {
  response: IncomingMessage;
  program: SocketEnd | null;
}

/** Responses of programs are untrusted: none may end the service, affect another request or outlive its connection. */
export class SandboxForwarder {
  private readonly joined = new Set<JoinedSocket>();
  private readonly underWay = new SharedLimit(Infinity, MAX_PER_PROGRAM);
  private isStopping = false;

  constructor(private readonly options: ForwarderOptions) {}

  /** Resolves when the response has been sent or broken off. Throws what `tooMany` and `unreachable` make. */
  async forwardRequest(
    request: IncomingMessage,
    response: ServerResponse,
    proxied: ProxiedRequest,
  ): Promise<void> {
    if (response.destroyed) {
      // The client has left, so no event would end an outgoing request.
      return;
    }
    if (!this.begin(proxied, response)) {
      throw this.options.tooMany(limitOf(proxied), proxied.isProven);
    }
    try {
      await forward(request, response, proxied, this.options.isOwnCookie);
    } catch (cause) {
      if (response.headersSent) {
        // A partial response must not look complete.
        response.destroy();
      } else if (!response.destroyed) {
        throw this.options.unreachable(cause);
      }
    }
  }

  /** If it fails, closes the socket, with a status while one can still be sent. */
  async forwardUpgrade(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    proxied: ProxiedRequest,
  ): Promise<void> {
    if (socket.destroyed) {
      return;
    }
    if (request.method !== 'GET' || !isWebSocket(request)) {
      refuseUpgrade(socket, '400 Bad Request');
      return;
    }
    if (this.isStopping) {
      refuseUpgrade(socket, '503 Service Unavailable');
      return;
    }
    if (!this.begin(proxied, socket)) {
      refuseUpgrade(socket, '429 Too Many Requests');
      return;
    }
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    const { isOwnCookie } = this.options;
    const outgoing = openRequest(request, proxied, headers, isOwnCookie, HANDSHAKE_TIMEOUT_MS);
    socket.once('close', () => outgoing.destroy());
    outgoing.end();
    try {
      const { response, program } = await responseOf(outgoing);
      if (program) {
        socket.write(
          switchingProtocols({
            ...responseHeaders(response.headers, proxied.rewriteResponseHeaders, isOwnCookie),
            ...headers,
          }),
          'latin1',
        );
        this.join({ socket, head }, program, proxied.onClientData);
      } else {
        const status = responseStatus(response.statusCode);
        outgoing.destroy();
        refuseUpgrade(socket, `${status} ${STATUS_CODES[status] ?? 'Refused'}`);
      }
    } catch {
      outgoing.destroy();
      refuseUpgrade(socket, '502 Bad Gateway');
    }
  }

  /** Has clients connect again, because open sockets keep the server from stopping. Resolves when all are closed. */
  async closeSockets(): Promise<void> {
    this.isStopping = true;
    await Promise.all([...this.joined].map((joined) => joined.closeForRestart()));
  }

  /** Counts a request as under way until the client's end closes; false when too many are. */
  private begin({ target, isProven, ownerId }: ProxiedRequest, client: Writable): boolean {
    // The keys cannot collide, because an address has no spaces.
    const callers = isProven ? target : `${target} unproven`;
    const place = this.underWay.take(callers, limitOf({ isProven }));
    if (typeof place === 'string') {
      return false;
    }
    client.once('close', place);
    this.options.hold(client, ownerId);
    return true;
  }

  private join(client: SocketEnd, program: SocketEnd, onClientData?: () => void): void {
    if (this.isStopping) {
      client.socket.destroy();
      program.socket.destroy();
      return;
    }
    const joined = new JoinedSocket(client, program, onClientData);
    this.joined.add(joined);
    joined.onClosed(() => this.joined.delete(joined));
  }
}

function limitOf({ isProven }: Pick<ProxiedRequest, 'isProven'>): number {
  return isProven ? MAX_PER_PROGRAM : MAX_UNPROVEN;
}

export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** Refuses a WebSocket with a plain HTTP status (RFC 6455, 4.2.2), and makes sure that the socket closes. */
export function refuseUpgrade(socket: Socket, status: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  // The HTTP server no longer reads the socket, so its end would go unnoticed.
  socket.resume();
  socket.setTimeout(REFUSED_LINGER_MS, () => socket.destroy());
}

/** Sends again over a new connection when the kept one was closed just as it was sent. */
async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  proxied: ProxiedRequest,
  isOwnCookie: IsOwnCookie,
): Promise<void> {
  const framing = proxied.inner ? {} : framingHeaders(request);
  const outgoing = openRequest(request, proxied, framing, isOwnCookie, RESPONSE_TIMEOUT_MS);
  try {
    await exchange(request, response, proxied, outgoing, isOwnCookie);
  } catch (error) {
    const isReset = ['ECONNRESET', 'EPIPE'].includes(jsonText(error, 'code') ?? '');
    const isRepeatable = outgoing.reusedSocket && isReset && isRepeatableRead(request);
    if (!isRepeatable || response.headersSent || response.destroyed) {
      throw error;
    }
    await forward(request, response, { ...proxied, isProven: false }, isOwnCookie);
  }
}

/** Passes request and response on as they arrive, no faster than they are read. */
async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  proxied: ProxiedRequest,
  outgoing: ClientRequest,
  isOwnCookie: IsOwnCookie,
): Promise<void> {
  const end = (): unknown => outgoing.destroy();
  response.once('close', end);
  try {
    if (proxied.inner) {
      outgoing.end(proxied.inner.body);
    } else {
      request.pipe(outgoing);
    }
    const { response: incoming, program } = await responseOf(outgoing);
    if (program) {
      program.socket.destroy();
      throw new Error('the program switched protocols without being asked');
    }
    response.writeHead(
      responseStatus(incoming.statusCode),
      responseHeaders(incoming.headers, proxied.rewriteResponseHeaders, isOwnCookie),
    );
    if (incoming.headers['content-length'] === undefined) {
      // Sends the headers before the first event of a stream; `flushHeaders` would encode them as UTF-8.
      response.write(Buffer.alloc(0));
    }
    // Not `pipeline`, which adds so many listeners to the response that Node.js warns of a leak.
    await Promise.all([finished(incoming), finished(incoming.pipe(response))]);
  } finally {
    response.off('close', end);
    outgoing.destroy();
    // Drains the unread rest of the body; the next request on this connection follows it.
    request.unpipe(outgoing);
    request.resume();
  }
}

/** Safe to send twice: no effect and no body. */
function isRepeatableRead({ method = '', headers }: IncomingMessage): boolean {
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  return isEmpty && SAFE_METHODS.includes(method);
}

function openRequest(
  request: IncomingMessage,
  proxied: ProxiedRequest,
  additionalHeaders: OutgoingHttpHeaders,
  isOwnCookie: IsOwnCookie,
  timeoutMs: number,
): ClientRequest {
  const { path, rewriteRequestHeaders } = proxied;
  const { method } = proxied.inner ?? request;
  const address = requireSandboxAddress(proxied.target);
  const { host } = new URL(requestOrigin(address));
  const headers = {
    ...endToEndHeaders(request.headers, isOwnCookie),
    ...forwardedHeaders(request),
    host,
    ...additionalHeaders,
  };
  rewriteRequestHeaders(headers);
  const outgoing = httpRequest({
    ...connectionOf(proxied, address),
    path,
    ...(method !== undefined && { method }),
    headers,
  });
  outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`timed out after ${timeoutMs} ms`)));
  return outgoing;
}

/**
 * Callers without the key share no connection: if the program disagrees about where a request ends, it could read an
 * attacker's bytes as the owner's next request. After a restart, a kept connection may belong to another program.
 */
function connectionOf({ connections, isProven }: ProxiedRequest, address: SandboxAddress): RequestOptions {
  if (connections === undefined) {
    return connectionOptions(address);
  }
  return isProven
    ? { host: 'localhost', agent: connections }
    : {
        host: 'localhost',
        createConnection: (options, onCreate) => connections.createConnection(options, onCreate),
      };
}

async function responseOf(outgoing: ClientRequest): Promise<ProgramResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<ProgramResponse>();
  outgoing.once('response', (response) => resolve({ response, program: null }));
  outgoing.once('upgrade', (response, socket, head) => resolve({ response, program: { socket, head } }));
  // Not `once`: the program may respond before it has read the whole body, and errors may follow.
  outgoing.on('error', reject);
  outgoing.once('close', () => reject(new Error('closed without a response')));
  return await promise;
}

function switchingProtocols(headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((each) => `${name}: ${String(each)}`),
  );
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`;
}
