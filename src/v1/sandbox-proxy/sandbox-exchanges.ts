import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { callbackify } from 'node:util';
import type { Client, Dispatcher } from 'undici';
import { type HeaderRewrite, responseHeaders, responseStatus } from './forwarded-headers.js';

type Library = typeof import('undici');

/**
 * Generous, because agent servers respond to some requests only when the work is done, such as a large clone or a
 * start.
 */
export const RESPONSE_TIMEOUT_MS = 15 * 60_000;
/**
 * As many as the requests one program may have under way. Fewer would close connections only to open them again, each
 * time with a read of the sandbox's row.
 */
export const MAX_IDLE = 256;
const MAX_TEXT = 16_384;

interface ExchangeOptions {
  /** The origin that requests name as their destination. */
  origin: string;
  open: () => Promise<Socket>;
  /** How long an idle connection is kept, in milliseconds. */
  idleMs: number;
}

/** A request without a body. */
export interface HeadRequest {
  method: string;
  path: string;
  /** Alternating names and values. */
  headers: string[];
}

/** A reused connection broke before there was a response. The request may succeed over a new one. */
export class ReusedConnectionError extends Error {
  constructor(cause: unknown) {
    super('the reused connection broke before a response', { cause });
    this.name = 'ReusedConnectionError';
  }
}

/**
 * Sends requests without a body to one program, and passes its responses on to their clients. These are by far the most
 * requests, and their cost is almost all processor time, of which `undici` takes half as much as `node:http`.
 */
export class SandboxExchanges {
  readonly #options: ExchangeOptions;
  readonly #idle: Client[] = [];
  #library: Library | null = null;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the response has been passed on.
   *
   * @throws ReusedConnectionError when a reused connection broke before the response; Error when there is no response that
   *   can be passed on, or either end breaks off
   */
  async send(request: HeadRequest, response: ServerResponse, rewrite: HeaderRewrite): Promise<void> {
    // Loaded with the first request, so that the service starts faster.
    this.#library ??= await import('undici');
    const kept = this.#idle.pop();
    const client = kept ?? this.#connect(this.#library);
    const relay = new ResponseRelay(response, rewrite);
    try {
      client.dispatch(request, relay);
      await relay.done;
      this.#keep(client);
    } catch (error) {
      client.destroy(() => undefined);
      throw kept !== undefined && !relay.hasBegun ? new ReusedConnectionError(error) : error;
    }
  }

  /** Closes idle connections; requests under way go on. */
  closeIdle(): void {
    this.#idle.splice(0).forEach((client) => client.destroy(() => undefined));
  }

  #connect({ Client: Connection }: Library): Client {
    const { origin, open, idleMs } = this.#options;
    const toSocket = callbackify(open);
    const client = new Connection(origin, {
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      headersTimeout: RESPONSE_TIMEOUT_MS,
      bodyTimeout: RESPONSE_TIMEOUT_MS,
      connect: (_options, callback) => {
        toSocket((error: Error | null, socket) => {
          if (error) {
            callback(error, null);
          } else {
            callback(null, socket);
          }
        });
      },
    });
    client.on('disconnect', () => {
      const index = this.#idle.indexOf(client);
      if (index >= 0) {
        this.#idle.splice(index, 1);
        client.destroy(() => undefined);
      }
    });
    return client;
  }

  #keep(client: Client): void {
    if (client.stats.connected && this.#idle.length < MAX_IDLE) {
      this.#idle.push(client);
    } else {
      client.destroy(() => undefined);
    }
  }
}

/** Passes a response on as it arrives, no faster than the client reads it. */
class ResponseRelay implements Dispatcher.DispatchHandler {
  readonly done: Promise<void>;
  readonly #response: ServerResponse;
  readonly #rewrite: HeaderRewrite;
  readonly #resolve: () => void;
  readonly #reject: (error: Error) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #length = NaN;
  #isWhole = false;

  constructor(response: ServerResponse, rewrite: HeaderRewrite) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#response = response;
    this.#rewrite = rewrite;
    response.once('close', this.#onClose);
  }

  /** Whether the program has begun its response. */
  hasBegun = false;

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#response.destroyed) {
      controller.abort(leftError());
    }
  }

  /** When this method throws, undici passes the error to `onResponseError`. */
  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.hasBegun = true;
    if (status >= 100 && status < 200) {
      // Interim responses are not forwarded.
      return;
    }
    const forwarded = responseHeaders(headers, this.#rewrite);
    this.#response.writeHead(responseStatus(status), forwarded);
    this.#length = Number(forwarded['content-length']);
    if (Number.isNaN(this.#length)) {
      // Sends the headers before the first event of a stream. (`flushHeaders` would encode them as UTF-8.)
      this.#response.write(Buffer.alloc(0));
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (chunk.length === this.#length) {
      this.#isWhole = true;
      // As a string, the body is sent together with the headers in one write, at half the cost of a gathered write.
      this.#response.end(chunk.length > MAX_TEXT ? chunk : chunk.toString('latin1'), 'latin1');
    } else if (!this.#response.write(chunk)) {
      controller.pause();
      this.#response.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(): void {
    if (!this.#isWhole) {
      this.#response.end();
    }
    this.#resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#reject(error);
  }

  readonly #onClose = (): void => {
    if (!this.#response.writableFinished) {
      const error = leftError();
      this.#controller?.abort(error);
      this.#reject(error);
    }
  };
}

function leftError(): Error {
  return new Error('the client has left');
}
