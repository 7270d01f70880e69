import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { urlToHttpOptions } from 'node:url';
import type { Request, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';

/** A request on its way to a program in a sandbox. */
export interface ProxiedRequest {
  /** Base address of the program. */
  target: string;
  /** Path and query as the program gets them. */
  path: string;
  /** Changes what the program is told. */
  rewriteRequestHeaders: (headers: OutgoingHttpHeaders) => void;
  /** Changes what the client is told. */
  rewriteResponseHeaders: (headers: OutgoingHttpHeaders) => void;
  /** Called whenever the client sends something over a WebSocket. */
  onClientData?: () => void;
}

/** Agent servers answer some requests only when the work is done: a large clone, a start. */
const ANSWER_TIMEOUT_MS = 15 * 60_000;
/** A client that leaves meanwhile is noticed after this at the latest: nothing is read of it before. */
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** Finds out that an end vanished, which nothing else would tell. */
const KEEP_ALIVE_MS = 30_000;
/** For what one end has still to say to the other. */
const LINGER_MS = 5_000;
const LEAST_STATUS = 200;
const MOST_STATUS = 599;

/** One end of a WebSocket, with what was read of it already. */
interface SocketEnd {
  socket: Socket;
  head: Buffer;
}

interface Answer {
  answer: IncomingMessage;
  /** Where it changed the protocol. */
  program: SocketEnd | null;
}

/**
 * Passes requests and WebSockets on to programs in sandboxes. What comes back is a stranger's: nothing of it may end the
 * service, reach another request or outlive its connection.
 */
export class SandboxForwarder {
  readonly #noAnswer: string;
  readonly #sockets = new Set<Socket>();
  #isStopping = false;

  /** @param noAnswer one sentence for when the program does not answer */
  constructor(noAnswer: string) {
    this.#noAnswer = noAnswer;
  }

  /**
   * Returns when the answer is through, or broken off at either end.
   *
   * @throws DomainError bad_gateway when there is no answer that can be passed on
   */
  async forwardRequest(request: Request, response: Response, passage: ProxiedRequest): Promise<void> {
    if (response.destroyed) {
      // The client left meanwhile; nobody would end what is begun for it.
      return;
    }
    const outgoing = open(request, passage, bodyHeaders(request), ANSWER_TIMEOUT_MS);
    response.once('close', () => outgoing.destroy());
    try {
      request.pipe(outgoing);
      const { answer, program } = await answerOf(outgoing);
      if (program) {
        program.socket.destroy();
        throw new Error('it changed the protocol without being asked');
      }
      response.writeHead(statusOf(answer), headersOf(answer, passage));
      // Events may be long in coming. (`flushHeaders` would send bytes of the headers as UTF-8.)
      response.write(Buffer.alloc(0));
      await pipeline(answer, response);
    } catch (cause) {
      if (response.headersSent) {
        // Half an answer must not look like a whole one.
        response.destroy();
      } else if (!response.destroyed) {
        throw new DomainError('bad_gateway', 'upstream_error', this.#noAnswer, { cause });
      }
    } finally {
      outgoing.destroy();
      // What the program did not want to read is in front of the connection's next request.
      request.unpipe(outgoing);
      request.resume();
    }
  }

  /** Passes a WebSocket on; closes the socket, with a status where it can, when that is not possible. */
  async forwardUpgrade(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    passage: ProxiedRequest,
  ): Promise<void> {
    if (socket.destroyed) {
      return;
    }
    if (request.method !== 'GET' || request.headers.upgrade?.toLowerCase() !== 'websocket') {
      refuseUpgrade(socket, '400 Bad Request');
      return;
    }
    if (this.#isStopping) {
      refuseUpgrade(socket, '503 Service Unavailable');
      return;
    }
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    const outgoing = open(request, passage, headers, HANDSHAKE_TIMEOUT_MS);
    socket.once('close', () => outgoing.destroy());
    outgoing.end();
    try {
      const { answer, program } = await answerOf(outgoing);
      if (program) {
        const lines = switching({ ...headersOf(answer, passage), ...headers });
        socket.write(lines, 'latin1');
        this.#join({ socket, head }, program, passage.onClientData);
      } else {
        const status = statusOf(answer);
        outgoing.destroy();
        refuseUpgrade(socket, `${status} ${STATUS_CODES[status] ?? 'Refused'}`);
      }
    } catch {
      outgoing.destroy();
      refuseUpgrade(socket, '502 Bad Gateway');
    }
  }

  /** An open WebSocket would hold the stop of the HTTP server. */
  closeSockets(): void {
    this.#isStopping = true;
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  #join(client: SocketEnd, program: SocketEnd, onUse?: () => void): void {
    const endBoth = (): void => {
      client.socket.destroy();
      program.socket.destroy();
    };
    if (this.#isStopping) {
      endBoth();
      return;
    }
    // One that was left stays open as long as the other end does not care.
    const linger = (): unknown => setTimeout(endBoth, LINGER_MS).unref();
    this.#sockets.add(client.socket);
    for (const [{ socket: end, head }, { socket: other }] of [
      [client, program],
      [program, client],
    ] as const) {
      end.unshift(head);
      end.setTimeout(0);
      end.setNoDelay(true);
      end.setKeepAlive(true, KEEP_ALIVE_MS);
      // That it broke is the two ends' business; `close` follows.
      end.on('error', () => undefined);
      end.once('end', linger);
      end.once('close', () => {
        other.destroySoon();
        linger();
      });
    }
    client.socket.once('close', () => this.#sockets.delete(client.socket));
    if (onUse) {
      client.socket.on('data', onUse);
    }
    client.socket.pipe(program.socket).pipe(client.socket);
  }
}

function open(
  request: IncomingMessage,
  { target, path, rewriteRequestHeaders: toProgram }: ProxiedRequest,
  further: OutgoingHttpHeaders,
  timeoutMs: number,
): ClientRequest {
  const { host } = new URL(target);
  const headers = { ...endToEndHeaders(request.headers), ...forwardedHeaders(request), host, ...further };
  toProgram(headers);
  const outgoing = httpRequest({
    ...urlToHttpOptions(new URL(target)),
    path,
    ...(request.method !== undefined && { method: request.method }),
    headers,
    // A connection for each: one that was left open may be another program's after a restart.
    agent: false,
  });
  outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error('no answer in time')));
  return outgoing;
}

/** How long the body is, so that the program reads as much as the service did. */
function bodyHeaders({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

/** From where and for which address the request came; what proxies before us said of it stays in front. */
function forwardedHeaders({ headers, socket }: IncomingMessage): OutgoingHttpHeaders {
  const before = headers['x-forwarded-for'];
  const from = socket.remoteAddress ?? '';
  return {
    'x-forwarded-for': before === undefined ? from : `${String(before)}, ${from}`,
    'x-forwarded-proto': headers['x-forwarded-proto'] ?? 'http',
    'x-forwarded-host': headers['x-forwarded-host'] ?? headers.host ?? '',
  };
}

async function answerOf(outgoing: ClientRequest): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  outgoing.once('response', (answer) => resolve({ answer, program: null }));
  outgoing.once('upgrade', (answer, socket, head) => resolve({ answer, program: { socket, head } }));
  // Stays: an error may also come while the rest of a body is sent to a program that has answered already.
  outgoing.on('error', reject);
  outgoing.once('close', () => reject(new Error('closed without an answer')));
  return await promise;
}

/** @throws Error for what is no status of an answer */
function statusOf({ statusCode = 0 }: IncomingMessage): number {
  if (statusCode < LEAST_STATUS || statusCode > MOST_STATUS) {
    throw new Error(`the status ${statusCode} is none`);
  }
  return statusCode;
}

/** @throws TypeError for what would not be let out again */
function headersOf(
  answer: IncomingMessage,
  { rewriteResponseHeaders: toClient }: ProxiedRequest,
): OutgoingHttpHeaders {
  const headers = endToEndHeaders(answer.headers);
  toClient(headers);
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    for (const each of [value].flat()) {
      validateHeaderValue(name, String(each));
    }
  }
  return headers;
}

function switching(headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((each) => `${name}: ${String(each)}`),
  );
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`;
}

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

const REFUSE_UPGRADE_LINGER_MS = 1000;

/** Answers the request for a WebSocket with a plain HTTP status (RFC 6455, 4.2.2), and sees that the socket goes. */
export function refuseUpgrade(socket: Socket, status: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  // Nobody else does so any more, and of a socket that nobody reads the end is not noticed.
  socket.resume();
  socket.setTimeout(REFUSE_UPGRADE_LINGER_MS, () => socket.destroy());
}
