import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AllowedHosts } from '../../common/requests/allowed-hosts.js';

/** The routes and sockets of the server, once they are loaded. */
export interface HttpApp {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  upgrade: (request: IncomingMessage, stream: Duplex, head: Buffer) => void;
  close: () => void;
}

/** The app is loaded after this time if nobody has asked for anything. */
const LOAD_AFTER_MS = 200;
const ALIVE = /^\/(alive|health)\/?(\?|$)/;
const READY = /^\/ready\/?(\?|$)/;

/**
 * Responds to liveness probes from the first moment on. Routes and sockets take far longer to load than everything
 * else, so they are loaded after that, and requests that need them wait.
 */
export class LazyApp {
  readonly #load: () => Promise<HttpApp>;
  readonly #hosts: AllowedHosts;
  readonly #timer: NodeJS.Timeout;
  #loading: Promise<HttpApp> | null = null;
  #app: HttpApp | null = null;

  /** @param hosts the names under which the server answers */
  constructor(hosts: AllowedHosts, load: () => Promise<HttpApp>) {
    this.#hosts = hosts;
    this.#load = load;
    this.#timer = setTimeout(() => void this.#loaded(), LOAD_AFTER_MS);
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const address = request.url ?? '/';
    if (!this.#hosts.accepts(request)) {
      sendJson(response, 421, { detail: 'The agent server does not answer under this host name.' });
    } else if (this.#app !== null) {
      this.#app.handle(request, response);
    } else if (ALIVE.test(address)) {
      sendJson(response, 200, { status: 'ok' });
      response.once('finish', () => void this.#loaded());
    } else if (READY.test(address)) {
      sendJson(response, 503, { status: 'starting' });
    } else {
      void this.#loaded().then((app) => app.handle(request, response));
    }
  };

  readonly upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    // Nobody else listens for errors until the stream is handed on.
    stream.once('error', ignoreError);
    if (!this.#hosts.accepts(request)) {
      stream.end('HTTP/1.1 421 Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    void this.#upgrade(request, stream, head);
  };

  /** Closes the app, if it was loaded. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    (await this.#loading)?.close();
  }

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const app = await this.#loaded();
    stream.removeListener('error', ignoreError);
    app.upgrade(request, stream, head);
  }

  /** A failure to load is not handled on purpose: it ends the process, which is of no use without its routes. */
  async #loaded(): Promise<HttpApp> {
    clearTimeout(this.#timer);
    this.#loading ??= this.#load();
    this.#app = await this.#loading;
    return this.#app;
  }
}

function ignoreError(): void {
  // The client left while it waited: there is nobody to respond to.
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
