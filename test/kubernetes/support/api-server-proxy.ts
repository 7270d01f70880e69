import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { headOf, HeldSockets, joinSockets } from '../../support/held-sockets.js';
import { reservedPort } from '../../support/reserved-port.js';
import { startListening, stopServer } from '../../support/start-listening.js';
import { type ApiAccess, accessesOf } from './api-access.js';

/** Where the API server really is, and who vouches for it. */
export interface ApiServerAddress {
  server: string;
  ca: Buffer | undefined;
  /** Clients say who they are in a header; this proxy has no rights of its own. */
  rejectUnauthorized: boolean;
}

/** A request of the backend, as the API server authorises and answers it. */
export interface ApiRequest {
  accesses: ApiAccess[];
  /** Null until it is answered. */
  status: number | null;
}

interface Answer {
  status: number;
  reason: string;
  headers: Record<string, string>;
  left: number;
  match: (access: ApiAccess) => boolean;
}

/**
 * Stands between a service and the API server, over HTTP on loopback, and takes it away: refuses, cuts, delays, answers in
 * its place. It writes down who asked for what.
 */
export class ApiServerProxy {
  readonly requests: ApiRequest[] = [];
  private readonly agent: Agent;
  private readonly sockets = new HeldSockets();
  private readonly answers: Answer[] = [];
  private server: Server | undefined;
  private port = 0;
  private latencyMs = 0;

  private constructor(private readonly address: ApiServerAddress) {
    const { ca, rejectUnauthorized } = address;
    this.agent = new Agent({ keepAlive: true, ca, rejectUnauthorized });
  }

  static async start(address: ApiServerAddress): Promise<ApiServerProxy> {
    const proxy = new ApiServerProxy(address);
    await proxy.comeBack();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Refuses connections and cuts the open ones, watches and attached streams too, as when the API server is killed. */
  async goAway(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    this.cut();
    await (server && stopServer(server));
  }

  /** Listens again, where it listened before. */
  async comeBack(): Promise<void> {
    const server = createServer((incoming, response) => {
      void this.pass(incoming, response);
    });
    server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.upgrade(incoming, socket, head);
    });
    server.on('connection', (socket: Socket) => this.sockets.hold(socket));
    // Linux may give any other port to a connection while nothing listens there.
    this.port = await startListening(server, this.port || (await reservedPort()));
    this.server = server;
  }

  /** Cuts what is open, and takes new connections. */
  cut(): void {
    this.sockets.cut();
  }

  /** Has every request wait first; 0: none. */
  delay(latencyMs: number): void {
    this.latencyMs = latencyMs;
  }

  /** Answers so many requests itself. */
  answer(
    status: number,
    reason: string,
    {
      times = Infinity,
      match = () => true,
      headers = {},
    }: Partial<Omit<Answer, 'status' | 'reason'>> & { times?: number } = {},
  ): void {
    this.answers.push({ status, reason, headers, left: times, match });
  }

  /** Everything works again. */
  heal(): void {
    this.answers.length = 0;
    this.latencyMs = 0;
  }

  async close(): Promise<void> {
    await this.goAway();
    this.agent.destroy();
  }

  private async pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = this.record(incoming);
    await this.hold();
    const answer = this.takeAnswer(request);
    if (answer !== null) {
      request.status = answer.status;
      incoming.resume();
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      response.end(statusBody(answer));
      return;
    }
    const upstream = httpsRequest(this.target(incoming), (answered) => {
      request.status = answered.statusCode ?? null;
      response.writeHead(answered.statusCode ?? 502, answered.headers);
      // A watch has to show at once that it is open.
      response.flushHeaders();
      answered.on('error', () => response.destroy());
      answered.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    incoming.pipe(upstream);
  }

  private async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const request = this.record(incoming);
    socket.on('error', () => undefined);
    await this.hold();
    const answer = this.takeAnswer(request);
    if (answer !== null) {
      request.status = answer.status;
      socket.end(
        `HTTP/1.1 ${answer.status} ${answer.reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      return;
    }
    const upstream = httpsRequest({ ...this.target(incoming), agent: undefined, ...this.trust() });
    upstream.on('error', () => socket.destroy());
    upstream.on('response', (answered) => {
      request.status = answered.statusCode ?? null;
      socket.write(headOf(answered));
      answered.pipe(socket);
    });
    upstream.on('upgrade', (answered, opened: Socket, first: Buffer) => {
      request.status = answered.statusCode ?? null;
      this.sockets.hold(opened);
      socket.write(headOf(answered));
      socket.write(first);
      opened.write(head);
      joinSockets(socket, opened);
    });
    upstream.end();
  }

  private trust(): Pick<RequestOptions, 'ca' | 'rejectUnauthorized'> {
    const { ca, rejectUnauthorized } = this.address;
    return { ca, rejectUnauthorized };
  }

  private target({ method, url = '/', headers }: IncomingMessage): RequestOptions {
    const { hostname, port } = new URL(this.address.server);
    return {
      hostname,
      port,
      method,
      path: url,
      headers: { ...headers, host: `${hostname}:${port}` },
      agent: this.agent,
    };
  }

  private record({ method = 'GET', url = '/', headers }: IncomingMessage): ApiRequest {
    const request = { accesses: accessesOf(method, url, headers.upgrade !== undefined), status: null };
    this.requests.push(request);
    return request;
  }

  private async hold(): Promise<void> {
    if (this.latencyMs > 0) {
      await wait(this.latencyMs);
    }
  }

  private takeAnswer({ accesses }: ApiRequest): Answer | null {
    const found = this.answers.find(({ left, match }) => left > 0 && accesses.some(match)) ?? null;
    if (found !== null) {
      found.left -= 1;
    }
    return found;
  }
}

function statusBody({ status, reason }: Answer): string {
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `answered by a test: ${reason}`,
    reason,
    code: status,
  });
}
