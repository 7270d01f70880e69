import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type RequestListener,
} from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { namedTlsServer } from '../../../../test/support/named-tls-server.js';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import type { ConnectionLimits } from '../../src/client-connections.js';
import { EgressProxy } from '../../src/egress-proxy.js';
import type { EgressPolicy, EgressRules, ReportedRequest } from '../../src/protocol.js';
import { HttpServiceConnection } from '../../src/service-connection.js';
import { FakeEgressService, KEY } from './fake-egress-service.js';
import { CREDENTIAL, denying, SANDBOX, samplePolicy } from './sample-policy.js';
import { newAuthority } from '../../src/new-authority.js';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a host got. */
export interface Received extends Answer {
  method: string;
  url: string;
  rawHeaders: string[];
}

interface Sent {
  method?: string;
  /** In place of that of the address. */
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string;
  credential?: string | null;
}

/** A proxy with its service, and hosts of the network at loopback: each name `*.example` leads there. */
export class ProxyWorld {
  /** Addresses of names, in place of loopback. */
  readonly addresses = new Map<string, string[]>();
  /** Names that were resolved. */
  readonly resolved: string[] = [];
  readonly received: Received[] = [];
  answer: RequestListener = (_request, response) => response.end('hello\n');
  private closing: (() => Promise<unknown>)[] = [];

  private constructor(
    readonly service: FakeEgressService,
    readonly authority: EgressPolicy['authority'],
    /** Of hosts. */
    readonly hostAuthority: EgressPolicy['authority'],
    readonly proxy: EgressProxy,
    readonly port: number,
  ) {}

  static async start(limits?: ConnectionLimits): Promise<ProxyWorld> {
    const [service, authority, hostAuthority] = await Promise.all([
      FakeEgressService.start(),
      newAuthority('one'),
      newAuthority('hosts'),
    ]);
    const addresses = new Map<string, string[]>();
    const resolved: string[] = [];
    const proxy = new EgressProxy({
      service: new HttpServiceConnection(service.address, KEY),
      ca: [hostAuthority.certificate],
      ...(limits && { limits }),
      resolve: (host) => {
        resolved.push(host);
        const found = addresses.get(host) ?? ['127.0.0.1'];
        return Promise.resolve(found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
      },
    });
    const listening = await proxy.listen({ host: '127.0.0.1', port: 0 });
    const port = typeof listening === 'string' ? 0 : listening.port;
    const world = new ProxyWorld(service, authority, hostAuthority, proxy, port);
    Object.assign(world, { addresses, resolved });
    world.allow({});
    return world;
  }

  async stop(): Promise<void> {
    await this.proxy.close(0);
    await Promise.all(this.closing.map((close) => close()));
    await this.service.stop();
  }

  /** Sets the policy of a sandbox. */
  allow(changes: Partial<EgressPolicy>, credential = CREDENTIAL): void {
    this.service.policies.set(
      credential,
      samplePolicy({ networks: ['127.0.0.0/8'], authority: this.authority, ...changes }),
    );
  }

  /** Rules that refuse all, and an owner who allows one request or tunnel to there. */
  allowOnce(authority: string, layers: EgressRules[] = [{ ...denying([]), yieldsOnce: true }]): void {
    this.allow({ layers, once: [authority] });
    this.service.allowedOnce.add(`${SANDBOX} ${authority}`);
  }

  /** A host that speaks plain HTTP; answers its port. */
  async startHost(): Promise<number> {
    const server = createServer((incoming, response) => void this.receive(incoming, response));
    this.closing.push(() => stopServer(server));
    return await startListening(server);
  }

  /** A host that speaks TLS under any name. */
  async startTlsHost(
    options: { authority?: EgressPolicy['authority'] } = {},
  ): Promise<{ port: number; server: HttpsServer }> {
    const authority = options.authority ?? this.hostAuthority;
    const server = namedTlsServer(authority, (incoming, response) => void this.receive(incoming, response));
    this.closing.push(() => stopServer(server));
    return { port: await startListening(server), server };
  }

  private async receive(incoming: IncomingMessage, response: Parameters<RequestListener>[1]): Promise<void> {
    const { method = '', url = '', headers, rawHeaders } = incoming;
    const received: Received = { method, url, headers, rawHeaders, status: 0, body: '' };
    this.received.push(received);
    if (headers['x-stream'] === undefined) {
      received.body = await text(incoming);
    }
    this.answer(incoming, response);
  }

  /** Keeps a server of the test until the end. */
  onStop(close: () => Promise<unknown>): void {
    this.closing.push(close);
  }

  /** `GET http://…` to the proxy. */
  async http(
    url: string,
    { method = 'GET', headers = {}, body, credential = CREDENTIAL }: Sent = {},
  ): Promise<Answer> {
    const sent = request({
      host: '127.0.0.1',
      port: this.port,
      method,
      path: url,
      agent: false,
      headers: { Host: new URL(url).host, ...proxyAuthorization(credential), ...headers },
    });
    sent.end(body);
    return await answerTo(sent);
  }

  /** CONNECT; a socket where the proxy lets it. */
  async connect(
    authority: string,
    { headers = {}, credential = CREDENTIAL }: Sent = {},
  ): Promise<Answer & { socket: Socket }> {
    const sent = request({
      host: '127.0.0.1',
      port: this.port,
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: { Host: authority, ...proxyAuthorization(credential), ...headers },
    });
    sent.end();
    const [response, socket, head]: [IncomingMessage, Socket, Buffer] = await Promise.race([
      once(sent, 'connect') as Promise<[IncomingMessage, Socket, Buffer]>,
      once(sent, 'error').then(([error]) => Promise.reject(error as Error)),
    ]);
    const status = response.statusCode ?? 0;
    socket.unshift(head);
    return { status, headers: response.headers, body: status === 200 ? '' : await text(socket), socket };
  }

  /** TLS in a tunnel, by the trust of the sandbox and of hosts. @throws Error where the handshake fails */
  async tls(authority: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const { socket, status } = await this.connect(authority);
    if (status !== 200) {
      throw new Error(`CONNECT answered ${status}`);
    }
    return await this.handshake(socket, authority.replace(/:\d+$/, ''), options);
  }

  async handshake(socket: Socket, servername: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const secure = connectTls({
      socket,
      servername,
      ca: [this.authority.certificate, this.hostAuthority.certificate],
      ALPNProtocols: ['h2', 'http/1.1'],
      ...options,
    });
    await Promise.race([
      once(secure, 'secureConnect'),
      once(secure, 'error').then(([error]) => Promise.reject(error as Error)),
      once(secure, 'close').then(() => Promise.reject(new Error('closed during the handshake'))),
    ]);
    return secure;
  }

  /** One request in a tunnel of its own. */
  async https(url: string, sent: Sent = {}): Promise<Answer> {
    const { host, port } = new URL(url);
    const secure = await this.tls(port === '' ? `${host}:443` : host);
    try {
      return await this.over(secure, url, sent);
    } finally {
      secure.destroy();
    }
  }

  /** One request on a connection that is there. */
  async over(socket: Duplex, url: string, sent: Sent = {}): Promise<Answer> {
    return await answerTo(this.begin(socket, url, sent).end(sent.body));
  }

  /** One that the test ends itself. What becomes of it is seen by its answer alone. */
  begin(socket: Duplex, url: string, { method = 'GET', headers = {}, path }: Sent = {}): ClientRequest {
    const { host } = new URL(url);
    const sent = request({
      createConnection: () => socket,
      method,
      path: path ?? (url.slice(url.indexOf(host) + host.length) || '/'),
      headers: { Host: host, Connection: 'keep-alive', ...headers },
    });
    return sent.on('error', () => undefined);
  }

  /** Bytes as they are; what comes back until the proxy closes. */
  async raw(bytes: string): Promise<string> {
    const socket = connect(this.port, '127.0.0.1');
    socket.write(bytes, 'latin1');
    return await text(socket);
  }

  /** What the service has been told of. */
  async reported(): Promise<(ReportedRequest & { sandbox: string })[]> {
    await this.proxy.flushReports();
    return this.service.reported;
  }
}

export function proxyAuthorization(credential: string | null, sandbox = SANDBOX): Record<string, string> {
  return credential === null
    ? {}
    : { 'Proxy-Authorization': `Basic ${Buffer.from(`${sandbox}:${credential}`).toString('base64')}` };
}

/** The head of `METHOD http://…` or `CONNECT name:port` to the proxy, which may be gone on with. */
export function requestHead(line: string, credential = CREDENTIAL, sandbox = SANDBOX): string {
  const host = line.replace(/^\w+ (?:http:\/\/)?([^/]+).*$/, '$1');
  const { 'Proxy-Authorization': authorization } = proxyAuthorization(credential, sandbox);
  return `${line} HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: ${authorization}\r\n`;
}

async function answerTo(sent: ReturnType<typeof request>): Promise<Answer> {
  // Of a body that is still under way when the answer is there.
  sent.on('error', () => undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}
