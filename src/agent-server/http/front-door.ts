import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RequestHandler } from 'express';

/** What answers once it is loaded. */
export interface HttpSide {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  upgrade: (request: IncomingMessage, stream: Duplex, head: Buffer) => void;
  close: () => void;
}

/** Nobody asked: then there is time. */
const LOAD_AFTER_MS = 200;
const ALIVE = /^\/(alive|health)\/?(\?|$)/;
const READY = /^\/ready\/?(\?|$)/;

/**
 * Answers whether the server lives from its first moment on. Routes and sockets take far longer to load than all the
 * rest; they are loaded after that, and whatever needs them waits until then.
 */
export class FrontDoor {
  readonly #load: () => Promise<HttpSide>;
  readonly #timer: NodeJS.Timeout;
  #loading: Promise<HttpSide> | null = null;
  #side: HttpSide | null = null;

  constructor(load: () => Promise<HttpSide>) {
    this.#load = load;
    this.#timer = setTimeout(() => void this.#loaded(), LOAD_AFTER_MS);
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const address = request.url ?? '/';
    if (this.#side !== null) {
      this.#side.handle(request, response);
    } else if (ALIVE.test(address)) {
      answer(response, 200, { status: 'ok' });
      response.once('finish', () => void this.#loaded());
    } else if (READY.test(address)) {
      answer(response, 503, { status: 'starting' });
    } else {
      void this.#loaded().then((side) => side.handle(request, response));
    }
  };

  readonly upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    // Until it is handed on, nobody else listens.
    stream.once('error', ignore);
    void this.#upgrade(request, stream, head);
  };

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const side = await this.#loaded();
    stream.removeListener('error', ignore);
    side.upgrade(request, stream, head);
  }

  /** Ends what was loaded. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    (await this.#loading)?.close();
  }

  /** A server whose routes cannot be loaded is of no use: it ends with that failure, which nobody handles. */
  async #loaded(): Promise<HttpSide> {
    clearTimeout(this.#timer);
    this.#loading ??= this.#load();
    this.#side = await this.#loading;
    return this.#side;
  }
}

function ignore(): void {
  // A client that is gone while it waits has no answer to get.
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}

/** The keys that open this server; with none it is open. */
export class SessionKeys {
  readonly #digests: Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest);
  }

  get isOpen(): boolean {
    return this.#digests.length === 0;
  }

  /** Takes equally long whatever the key is. */
  accepts(key: string | undefined): boolean {
    if (this.isOpen) {
      return true;
    }
    const given = digest(key ?? '');
    return this.#digests.map((known) => timingSafeEqual(known, given)).includes(true);
  }

  /** Lets only requests with a key through. */
  readonly guard: RequestHandler = (request, response, next) => {
    if (this.accepts(request.get('x-session-api-key'))) {
      next();
    } else {
      response.status(401).json({ detail: 'Unauthorized' });
    }
  };
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

const LOCAL = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** Lets pages of this machine and of the given origins call us (`*`: of any). */
export function cors(origins: readonly string[]): RequestHandler {
  const allowed = new Set(origins.map((origin) => origin.replace(/\/$/, '')));
  return (request, response, next) => {
    const origin = request.get('origin');
    response.vary('Origin');
    if (origin !== undefined && (LOCAL.test(origin) || allowed.has(origin) || allowed.has('*'))) {
      response.set('Access-Control-Allow-Origin', origin);
      response.set('Access-Control-Allow-Credentials', 'true');
      if (request.method === 'OPTIONS' && request.get('access-control-request-method')) {
        response.set('Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE, OPTIONS');
        response.set('Access-Control-Allow-Headers', request.get('access-control-request-headers') ?? '*');
        response.set('Access-Control-Max-Age', '600');
        response.status(204).end();
        return;
      }
    }
    next();
  };
}
