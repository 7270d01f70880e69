import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import { startListening, stopServer } from './start-listening.js';
import { until } from './until.js';

/** The pace of a Kubernetes endpoint controller whose readiness probes are set to be quick. */
const CHECK_MS = 1_000;
/** Nothing was sent over a connection that failed so: another replica may get the request. */
const NOT_CONNECTED = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'];

/** One of the replicas behind a balancer. */
class Backend {
  isReady = false;
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, scheduling: 'fifo' });
  readonly #checks: NodeJS.Timeout;

  constructor(readonly url: string) {
    this.#url = new URL(url);
    this.#checks = setInterval(() => this.check(), CHECK_MS);
    this.check();
  }

  get address(): { host: string; port: number } {
    return { host: this.#url.hostname, port: Number(this.#url.port) };
  }

  get agent(): Agent {
    return this.#agent;
  }

  check(): void {
    const asked = request({ ...this.address, path: '/health/ready', agent: false, timeout: CHECK_MS });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => this.#note(false));
    asked.on('response', (response) => {
      response.resume();
      this.#note(response.statusCode === 200);
    });
    asked.end();
  }

  close(): void {
    clearInterval(this.#checks);
    this.#note(false);
    this.#agent.destroy();
  }

  /** Requests that are under way go on; idle connections are not used again. */
  #note(isReady: boolean): void {
    this.isReady = isReady;
    if (!isReady) {
      Object.values(this.#agent.freeSockets).forEach((sockets) =>
        sockets?.forEach((socket) => socket.destroy()),
      );
    }
  }
}

/**
 * A plain balancer for HTTP and WebSockets: each request goes to the next replica that is ready. It asks `/health/ready` once
 * a second, lets what is under way at a replica that is no longer ready go on, and repeats nothing that it has sent. Only a
 * connection that is refused makes it try the next replica.
 */
export class RoundRobin {
  readonly #server: Server;
  readonly #backends: Backend[] = [];
  readonly #sockets = new Set<Socket>();
  #turn = 0;

  private constructor(
    server: Server,
    readonly url: string,
  ) {
    this.#server = server;
  }

  static async start(): Promise<RoundRobin> {
    const server = createServer();
    const balancer = new RoundRobin(server, `http://127.0.0.1:${await startListening(server)}`);
    server.on('request', (incoming, response) =>
      balancer.#forward(incoming, response, balancer.#candidates()),
    );
    server.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) =>
      balancer.#upgrade(incoming, socket, head, balancer.#candidates()),
    );
    return balancer;
  }

  /** Adds a replica; resolves when it is ready. */
  async add(url: string): Promise<void> {
    const backend = new Backend(url);
    this.#backends.push(backend);
    await until(() => backend.isReady);
  }

  /** Forgets a replica that has ended. */
  remove(url: string): void {
    const index = this.#backends.findIndex((backend) => backend.url === url);
    this.#backends.splice(index, 1).forEach((backend) => backend.close());
  }

  async close(): Promise<void> {
    this.#backends.splice(0).forEach((backend) => backend.close());
    this.#sockets.forEach((socket) => socket.destroy());
    await stopServer(this.#server);
  }

  /** The replicas that are ready, beginning with the one whose turn it is. */
  #candidates(): Backend[] {
    const ready = this.#backends.filter(({ isReady }) => isReady);
    this.#turn += 1;
    const first = ready.length === 0 ? 0 : this.#turn % ready.length;
    return [...ready.slice(first), ...ready.slice(0, first)];
  }

  #forward(incoming: IncomingMessage, response: ServerResponse, [backend, ...others]: Backend[]): void {
    if (backend === undefined) {
      response.writeHead(503, { 'x-balancer': 'no replica is ready' }).end();
      return;
    }
    const outgoing = request({
      ...backend.address,
      agent: backend.agent,
      path: incoming.url ?? '/',
      method: incoming.method ?? 'GET',
      headers: { ...incoming.headers, connection: 'keep-alive' },
    });
    // Nothing of the request is taken before there is a connection, so that it can go to another replica.
    outgoing.once('socket', (socket) => {
      if (socket.connecting) {
        socket.once('connect', () => incoming.pipe(outgoing));
      } else {
        incoming.pipe(outgoing);
      }
    });
    outgoing.on('response', (answer) => {
      const { connection: _connection, ...headers } = answer.headers;
      response.writeHead(answer.statusCode ?? 502, headers);
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (NOT_CONNECTED.includes(error.code ?? '') && !response.headersSent) {
        backend.check();
        this.#forward(incoming, response, others);
      } else if (response.headersSent) {
        response.destroy();
      } else {
        response.writeHead(502, { 'x-balancer': error.code ?? error.message }).end();
      }
    });
    response.once('close', () => outgoing.destroy());
  }

  #upgrade(incoming: IncomingMessage, client: Socket, head: Buffer, [backend, ...others]: Backend[]): void {
    client.on('error', () => client.destroy());
    if (backend === undefined) {
      client.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const replica = connect(backend.address);
    this.#sockets.add(client).add(replica);
    client.once('close', () => replica.destroy());
    replica.once('close', () => {
      this.#sockets.delete(client);
      this.#sockets.delete(replica);
      // What it has sent last still arrives.
      client.destroySoon();
    });
    replica.once('connect', () => {
      replica.write(headOf(incoming));
      replica.write(head);
      replica.pipe(client);
      client.pipe(replica);
    });
    replica.on('error', (error: NodeJS.ErrnoException) => {
      if (NOT_CONNECTED.includes(error.code ?? '')) {
        replica.removeAllListeners('close');
        this.#sockets.delete(replica);
        this.#upgrade(incoming, client, head, others);
      }
    });
  }
}

/** The request line and the headers as they came. */
function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
