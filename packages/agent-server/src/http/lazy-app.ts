import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AllowedHosts } from '@slipway/common/requests/allowed-hosts.js';
import { agentSpan } from '../observability.js';

export interface HttpApp {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  upgrade: (request: IncomingMessage, stream: Duplex, head: Buffer) => void;
  close: () => void;
}

type CreateApp = () => Promise<HttpApp>;

const LOAD_AFTER_MS = 200;
const ALIVE = /^\/alive\/?(\?|$)/;
const HEALTH = /^\/health\/?(\?|$)/;
const READY = /^\/ready\/?(\?|$)/;
const UNASSIGNED =
  'This agent server waits for its session key and serves nobody yet. Try again when /alive says that it is assigned.';

/**
 * Responds only to liveness probes until the server is assigned, that is, has its session key. Routes and sockets
 * take longest to load, so they are loaded after that, and requests that need them wait.
 */
export class LazyApp {
  readonly #hosts: AllowedHosts;
  readonly #preload: () => Promise<unknown>;
  readonly #timer: NodeJS.Timeout;
  #isTimeUp = false;
  #create: CreateApp | null = null;
  #loading: Promise<HttpApp> | null = null;
  #app: HttpApp | null = null;

  /**
   * @param preload loads the app's modules before a request needs them
   * @param loadAfterMs when it is loaded even if no request has needed it
   */
  constructor(hosts: AllowedHosts, preload: () => Promise<unknown>, loadAfterMs = LOAD_AFTER_MS) {
    this.#hosts = hosts;
    this.#preload = preload;
    this.#timer = setTimeout(() => this.#loadUnasked(), loadAfterMs);
  }

  assign(create: CreateApp): void {
    this.#create = create;
    if (this.#isTimeUp) {
      void this.#loaded(create);
    }
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const address = request.url ?? '/';
    const create = this.#create;
    if (!this.#hosts.accepts(request)) {
      sendJson(response, 421, { detail: 'The agent server does not answer under this host name.' });
    } else if (this.#app !== null) {
      this.#app.handle(request, response);
    } else if (create === null) {
      this.#handleUnassigned(address, response);
    } else if (ALIVE.test(address) || HEALTH.test(address)) {
      sendJson(response, 200, { status: 'ok', ...(ALIVE.test(address) && { assigned: true }) });
      response.once('finish', () => void this.#loaded(create));
    } else if (READY.test(address)) {
      sendJson(response, 503, { status: 'starting' });
    } else {
      void agentSpan('load routes', () => this.#loaded(create)).then((app) => app.handle(request, response));
    }
  };

  readonly upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    // An error before the stream is handed on would end the process if there were no listener.
    stream.once('error', ignoreError);
    if (!this.#hosts.accepts(request)) {
      refuse(stream, '421 Misdirected Request');
    } else if (this.#create === null) {
      refuse(stream, '503 Service Unavailable');
    } else {
      void this.#upgrade(this.#create, request, stream, head);
    }
  };

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    (await this.#loading)?.close();
  }

  /** Each response closes its connection, so that no client holds many useless ones. */
  #handleUnassigned(address: string, response: ServerResponse): void {
    if (ALIVE.test(address)) {
      sendJson(response, 200, { status: 'ok', assigned: false });
    } else {
      response.setHeader('Connection', 'close');
      response.setHeader('Retry-After', '1');
      sendJson(response, 503, { detail: UNASSIGNED });
    }
  }

  async #upgrade(create: CreateApp, request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const app = await this.#loaded(create);
    stream.removeListener('error', ignoreError);
    app.upgrade(request, stream, head);
  }

  #loadUnasked(): void {
    this.#isTimeUp = true;
    void (this.#create === null ? this.#preload() : this.#loaded(this.#create));
  }

  /** A failure to load is deliberately not handled: it ends the process, which is useless without its routes. */
  async #loaded(create: CreateApp): Promise<HttpApp> {
    clearTimeout(this.#timer);
    this.#loading ??= create();
    this.#app = await this.#loading;
    return this.#app;
  }
}

function refuse(stream: Duplex, status: string): void {
  stream.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function ignoreError(): void {
  // The client left while it waited, so there is no response to send.
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
