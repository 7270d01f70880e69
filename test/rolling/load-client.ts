import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { parseJson } from '@slipway/common/json-access.js';
import type { Tally } from './tally.js';

const TIMEOUT_MS = 60_000;
/** While the cluster has not noticed yet that a replica is gone. */
const REFUSED_RETRIES = 20;
const REFUSED_PAUSE_MS = 100;

export interface LoadAnswer {
  status: number;
  body: unknown;
}

interface LoadRequest {
  body?: object;
  headers?: Record<string, string>;
}

/** Sends requests as one user does, over connections that are kept, and counts them. It repeats nothing that it has sent. */
export class LoadClient {
  readonly #agent: HttpAgent;
  readonly #send: typeof httpRequest;

  constructor(
    readonly url: string,
    readonly key: string,
    readonly tally: Tally,
  ) {
    const isSecure = url.startsWith('https:');
    this.#agent = isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
    this.#send = isSecure ? httpsRequest : httpRequest;
  }

  /** The same place as another user. */
  as(key: string): LoadClient {
    return new LoadClient(this.url, key, this.tally);
  }

  /**
   * Sends a request and counts it.
   *
   * @param what the kind of request, for the counts
   * @returns null when it failed: no response, or one that says so
   */
  async send(
    what: string,
    method: string,
    path: string,
    { body, headers = {} }: LoadRequest = {},
  ): Promise<LoadAnswer | null> {
    const startedAt = this.tally.begin(what);
    const text = body === undefined ? '' : JSON.stringify(body);
    const all = {
      'X-Session-API-Key': this.key,
      ...(body !== undefined && {
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(text)),
      }),
      ...headers,
    };
    try {
      const answer = await this.#exchange(method, path, all, text);
      if (answer.status >= 200 && answer.status < 300) {
        return answer;
      }
      this.tally.fail(what, startedAt, `${answer.status} ${JSON.stringify(answer.body)}`.slice(0, 300));
    } catch (error) {
      this.tally.fail(what, startedAt, String(error));
    }
    return null;
  }

  /** @throws Error when it failed */
  async must(what: string, method: string, path: string, given: LoadRequest = {}): Promise<unknown> {
    const answer = await this.send(what, method, path, given);
    if (answer === null) {
      throw new Error(`${method} ${path} failed: ${this.tally.failures.at(-1)?.reason ?? 'lost'}`);
    }
    return answer.body;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #exchange(
    method: string,
    path: string,
    headers: Record<string, string>,
    text: string,
  ): Promise<LoadAnswer> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#exchangeOnce(method, path, headers, text);
      } catch (error) {
        if (retries >= REFUSED_RETRIES || (error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') {
          throw error;
        }
        this.tally.refused += 1;
        await wait(REFUSED_PAUSE_MS);
      }
    }
  }

  async #exchangeOnce(
    method: string,
    path: string,
    headers: Record<string, string>,
    text: string,
  ): Promise<LoadAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<LoadAnswer>();
    const outgoing = this.#send(`${this.url}${path}`, { method, headers, agent: this.#agent });
    outgoing.setTimeout(TIMEOUT_MS, () => outgoing.destroy(new Error('timed out')));
    outgoing.on('error', reject);
    outgoing.on('response', (response: IncomingMessage) => {
      let received = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (received += chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: parseJson(received) ?? received }),
      );
    });
    outgoing.end(text);
    return await promise;
  }
}
