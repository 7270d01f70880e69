import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import type { Duplex } from 'node:stream';
import { once } from 'node:events';
import { RepeatedWork, within } from '@slipway/common/async.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import type { ResolveName } from '@slipway/common/http/name-lookup.js';
import { ClientConnections, type ConnectionLimits } from './client-connections.js';
import { Dialer } from './dialer.js';
import { type Client, Exchange, type ProxyParts } from './exchange.js';
import { forwardRequest, IDLE_MS, MAX_HEAD_BYTES } from './forward.js';
import { hasBody, headerProblem } from './message-headers.js';
import { PolicySource } from './policy-source.js';
import type { EgressPolicy } from './protocol.js';
import { denied, RefusedError, sendRefusal } from './refusal.js';
import { logLine, ReportQueue } from './report-queue.js';
import { Shares } from './shares.js';
import { SandboxAuthorities } from './sandbox-authority.js';
import type { ServiceConnection } from './service-connection.js';
import type { Asked } from './decision.js';
import { parseAbsoluteForm, parseAuthority } from './target.js';
import { COMPARE_MS, endForbidden, openTunnel, plainSocket } from './tunnel.js';
import { UsageRequests } from './model-calls/usage-request.js';

const HEADERS_MS = 30_000;
/** Of one sandbox: hosts are asked for answers that are not packed. */
const UNPACKED_AT_ONCE = 8;
const KEEP_ALIVE_MS = 65_000;
const MAX_CONNECTIONS = 16_384;
const LIMITS: ConnectionLimits = { strangers: 1_024, share: 512, pipelined: 64, heads: 2 * MAX_HEAD_BYTES };
const REPORT_MS = 3_000;
const LINGER_MS = 5_000;
export const HEALTH_PATH = '/health';
const UNREADABLE =
  'HTTP/1.1 400 Bad Request\r\nX-Slipway-Egress: denied; reason=protocol\r\nConnection: close\r\n\r\n';

interface EgressProxyOptions {
  service: ServiceConnection;
  resolve?: ResolveName;
  /** Authorities of hosts, in place of those that Node.js trusts. */
  ca?: readonly string[];
  limits?: ConnectionLimits;
}

/** The way out of sandboxes: an HTTP proxy that passes what the rules of each sandbox let pass, and adds its credentials. */
export class EgressProxy {
  private readonly servers: Server[] = [];
  private readonly parts: ProxyParts;
  private readonly clients: ClientConnections;
  private readonly rechecks: RepeatedWork;
  private isClosing = false;

  constructor(options: EgressProxyOptions) {
    const { service, resolve, ca, limits = LIMITS } = options;
    const policies = new PolicySource(service);
    const dialer = new Dialer({ resolve, ownPorts: () => this.ports });
    this.clients = new ClientConnections({ policies, dialer, ca, limits });
    this.parts = {
      service,
      policies,
      reports: new ReportQueue(service),
      dialer,
      authorities: new SandboxAuthorities(),
      unpacking: new Shares(UNPACKED_AT_ONCE),
      usage: new UsageRequests(),
      lasting: new Set(),
    };
    this.rechecks = new RepeatedWork(
      COMPARE_MS,
      () => endForbidden(this.parts),
      (error) => logLine('warn', 'failed to check open tunnels', { error: errorWithCauses(error) }),
    );
  }

  get ports(): number[] {
    return this.servers.flatMap((server) => {
      const address = server.address();
      return address !== null && typeof address !== 'string' ? [address.port] : [];
    });
  }

  /** What is held at this moment, by what it is. */
  get held(): Record<string, number> {
    const { policies, reports, dialer, lasting, unpacking, usage } = this.parts;
    return {
      ...this.clients.held,
      lasting: lasting.size,
      unpacking: unpacking.total,
      bodies: usage.size,
      lookups: dialer.pending,
      asking: policies.sizes.asking,
      reports: reports.size,
    };
  }

  /** Listens at one more address, and says which. */
  async listen(options: ListenOptions): Promise<AddressInfo | string> {
    const server = createServer({
      maxHeaderSize: MAX_HEAD_BYTES,
      headersTimeout: HEADERS_MS,
      // Bodies may take long, and a socket's own timeout ends what stands still.
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.timeout = IDLE_MS;
    server
      .on('connection', (socket: Duplex) => this.clients.admit(socket))
      .on('request', (request, response) => void this.handle(request, response, null))
      .on('upgrade', (request, socket, head) => {
        if (this.isFree(socket)) {
          void this.handle(request, answerOn(request, socket), { socket, head });
        }
      })
      .on('connect', (request, socket, head) => {
        if (this.isFree(socket)) {
          void this.tunnel(request, { server, socket, head });
        }
      })
      .on('clientError', (_error, socket) => {
        socket.end(UNREADABLE, () => socket.destroy());
      });
    server.listen(options);
    await once(server, 'listening');
    // Too many open files, for one: the next connection may be taken again.
    server.on('error', (error) =>
      logLine('error', 'failed to take a connection', { error: errorWithCauses(error) }),
    );
    this.servers.push(server);
    this.parts.reports.start();
    this.rechecks.start();
    const address = server.address();
    if (address === null) {
      throw new Error('the proxy does not listen');
    }
    return address;
  }

  /** Sends what is to be reported, now. */
  async flushReports(): Promise<void> {
    await this.parts.reports.flush();
  }

  /** Ends tunnels that are no longer allowed, now. */
  async recheck(): Promise<void> {
    await this.rechecks.now();
  }

  /** Takes no more connections, lets what is under way end within a grace, and reports what was done. */
  async close(graceMs: number): Promise<void> {
    this.isClosing = true;
    await this.rechecks.stop();
    const closed = Promise.all(this.servers.map((server) => closeServer(server)));
    await within(graceMs, closed);
    this.clients.endAll();
    await closed;
    await this.parts.reports.stop(REPORT_MS);
    await this.parts.service.close();
  }

  /** Whether a request may take a connection over; one that does so before earlier ones are answered is cut off. */
  private isFree(socket: Duplex): boolean {
    const isFree = this.clients.of(socket)?.underWay === 0;
    if (!isFree) {
      socket.destroy();
    }
    return isFree;
  }

  private async handle(
    request: IncomingMessage,
    response: ServerResponse,
    upgrade: { socket: Duplex; head: Buffer } | null,
  ): Promise<void> {
    const client = this.clients.of(request.socket);
    if (client === undefined) {
      request.socket.destroy();
      return;
    }
    if (!this.clients.take(client, request, response)) {
      return;
    }
    if (client.inside === null && request.url === HEALTH_PATH) {
      response
        .writeHead(this.isClosing ? 503 : 200, { 'Content-Type': 'text/plain' })
        .end(this.isClosing ? 'closing\n' : 'ok\n');
      return;
    }
    response.shouldKeepAlive &&= !this.isClosing;
    const method = request.method ?? 'GET';
    let exchange: Exchange | null = null;
    await this.serve(
      client,
      request,
      () => response,
      async (policy) => {
        exchange = new Exchange(this.parts, policy, { ...addressed(client, request), method }, method);
        if (client.inside !== null && !/^\/[^#]*$/.test(request.url ?? '')) {
          throw denied('protocol', client.inside.target, { detail: 'its address is no path' });
        }
        await forwardRequest({ parts: this.parts, client, exchange, request, response, upgrade });
        exchange.report();
      },
      (error) => exchange?.report(error),
    );
    if (this.isClosing) {
      this.servers.forEach((each) => each.closeIdleConnections());
    }
  }

  private async tunnel(
    request: IncomingMessage,
    { server, socket, head }: { server: Server; socket: Duplex; head: Buffer },
  ): Promise<void> {
    const client = this.clients.of(socket);
    if (client === undefined) {
      socket.destroy();
      return;
    }
    let exchange: Exchange | null = null;
    await this.serve(
      client,
      request,
      () => answerOn(request, socket),
      async (policy) => {
        const target = parseAuthority(request.url ?? '', { isTls: true, defaultPort: null });
        if (target === null || client.inside !== null) {
          throw malformed('CONNECT needs a name and a port');
        }
        exchange = new Exchange(this.parts, policy, { target }, 'CONNECT');
        const problem = headerProblem(request, target, target.port);
        if (problem !== null) {
          throw denied('protocol', target, { detail: problem });
        }
        await openTunnel({
          parts: this.parts,
          client,
          exchange,
          socket,
          head,
          serve: (inside) => {
            this.clients.addInside(inside);
            server.emit('connection', inside.socket);
          },
        });
      },
      (error) => exchange?.report(error),
    );
  }

  /** Runs an exchange, and answers where it is refused. */
  private async serve(
    client: Client,
    request: IncomingMessage,
    respond: () => ServerResponse,
    work: (policy: EgressPolicy) => Promise<void>,
    onError: (error: unknown) => void,
  ): Promise<void> {
    try {
      await this.clients.serve(client, request, work);
    } catch (error) {
      const refusal = error instanceof RefusedError ? error : failed(error);
      onError(refusal);
      await answerRefusal(request, respond(), refusal);
    }
  }
}

/** Where a request goes: in opened TLS to the host of its tunnel, elsewhere to that of its address. @throws RefusedError */
function addressed({ inside }: Client, { url = '' }: IncomingMessage): Pick<Asked, 'target' | 'path'> {
  if (inside !== null) {
    return { target: inside.target, path: url };
  }
  const parsed = parseAbsoluteForm(url);
  if (parsed === null) {
    throw malformed('this is a proxy for addresses such as http://host/path, and for CONNECT');
  }
  return parsed;
}

function malformed(text: string): RefusedError {
  return new RefusedError(
    'protocol',
    403,
    `Slipway's egress proxy does not understand this request: ${text}.`,
  );
}

function failed(error: unknown): RefusedError {
  logLine('error', 'failed to pass a request on', { error: errorWithCauses(error) });
  return new RefusedError(null, 502, "Slipway's egress proxy failed to pass this request on.", null, {
    cause: error,
  });
}

/** Node.js gives no response for requests that take the connection over. */
function answerOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(plainSocket(socket));
  response.once('finish', () => socket.end());
  return response;
}

async function answerRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: RefusedError,
): Promise<void> {
  if (response.headersSent || response.socket?.destroyed === true) {
    // What was begun cannot be taken back; an end in the middle shows that it is not whole.
    response.destroy();
    return;
  }
  sendRefusal(response, refusal);
  if (hasBody(request) && !request.complete) {
    // An end before its end would reset the connection, and take the answer away.
    const closed = Promise.withResolvers<void>();
    request.resume().once('close', closed.resolve);
    await within(LINGER_MS, closed.promise);
  }
  response.end();
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  await closed;
}
