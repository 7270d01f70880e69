import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startListening, stopServer } from '../support/start-listening.js';

export interface FakeRequest {
  method: string;
  /** Path without query, as sent (still percent-encoded). */
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: string;
  /** The same as it was sent. */
  bytes: Buffer;
  /** When it arrived, `performance.now()`. */
  at: number;
}

export interface FakeResponse {
  status?: number;
  headers?: Record<string, string>;
  /** Objects are sent as JSON. */
  body?: unknown;
}

/** What can go wrong instead of an answer. */
export type Fault =
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
  /** Accepts the request and never answers. */
  | { kind: 'hang' }
  /** Destroys the connection. */
  | { kind: 'reset' }
  /** Promises a full JSON body and ends in the middle of it. */
  | { kind: 'truncate' }
  /** Answers `bytes` of valid JSON. */
  | { kind: 'huge'; bytes: number }
  | { kind: 'redirect'; location: string };

export interface FaultScope {
  /** How many requests it hits; every one by default. */
  times?: number;
  match?: (request: FakeRequest) => boolean;
}

export type FakeHandler = (request: FakeRequest) => FakeResponse | Promise<FakeResponse>;

/** A real HTTP server on loopback with recorded requests, injectable faults and optional latency. */
export class FakeServer {
  readonly requests: FakeRequest[] = [];
  readonly origin: string;
  private readonly server: Server;
  private readonly faults: { fault: Fault; left: number; match: (request: FakeRequest) => boolean }[] = [];

  private constructor(server: Server, origin: string) {
    this.server = server;
    this.origin = origin;
  }

  /** Listens on `host` (127.0.0.1 by default), `port` (any by default); every answer waits `latencyMs` (0 by default). */
  static async start(
    handler: FakeHandler,
    options: { latencyMs?: number; port?: number; host?: string } = {},
  ): Promise<FakeServer> {
    const host = options.host ?? '127.0.0.1';
    let self: FakeServer;
    const server = createServer((request, response) => {
      self.serve(handler, options.latencyMs ?? 0, request, response).catch((error: unknown) => {
        if (!response.headersSent) {
          response.writeHead(599, { 'content-type': 'text/plain' });
        }
        response.end(String(error));
      });
    });
    server.keepAliveTimeout = 60_000;
    self = new FakeServer(server, `http://${host}:${await startListening(server, options.port, host)}`);
    return self;
  }

  injectFault(fault: Fault, scope: FaultScope = {}): void {
    this.faults.push({ fault, left: scope.times ?? Infinity, match: scope.match ?? (() => true) });
  }

  clearFaults(): void {
    this.faults.length = 0;
  }

  /** Destroys every connection. */
  hangUp(): void {
    this.server.closeAllConnections();
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }

  private async serve(
    handler: FakeHandler,
    latencyMs: number,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const request = await readRequest(incoming);
    this.requests.push(request);
    if (latencyMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, latencyMs));
    }
    const fault = this.takeFault(request);
    if (fault) {
      applyFault(fault, incoming, response);
      return;
    }
    const answer = await handler(request);
    const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? '');
    response.writeHead(answer.status ?? 200, {
      'content-type': 'application/json; charset=utf-8',
      ...answer.headers,
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  }

  private takeFault(request: FakeRequest): Fault | undefined {
    const entry = this.faults.find((candidate) => candidate.left > 0 && candidate.match(request));
    if (!entry) {
      return undefined;
    }
    entry.left -= 1;
    return entry.fault;
  }
}

async function readRequest(incoming: IncomingMessage): Promise<FakeRequest> {
  const bytes = await buffer(incoming);
  const url = new URL(incoming.url ?? '/', 'http://fake');
  return {
    method: incoming.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    ),
    body: bytes.toString('utf8'),
    bytes,
    at: performance.now(),
  };
}

function applyFault(fault: Fault, incoming: IncomingMessage, response: ServerResponse): void {
  switch (fault.kind) {
    case 'status': {
      const body = typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body ?? {});
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(body);
      return;
    }
    case 'hang':
      return;
    case 'reset':
      incoming.socket.resetAndDestroy();
      return;
    case 'truncate':
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"data":{"viewer":{"login":"oct');
      return;
    case 'huge':
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"padding":"${'x'.repeat(fault.bytes)}"}`);
      return;
    case 'redirect':
      response.writeHead(302, { location: fault.location });
      response.end();
  }
}
