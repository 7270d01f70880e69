import { Agent, request } from 'node:http';

export interface ClientRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: string;
  /** In the place of the client's own: the key of a sandbox. */
  key?: string;
}

export interface TimedAnswer {
  status: number;
  body: string;
  /** From sending to the last byte, milliseconds. */
  ms: number;
}

/** A client with as little work of its own as Node allows; connections are kept. */
export class HttpClient {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly url: string;
  private readonly apiKey: string;

  constructor(url: string, apiKey: string) {
    this.url = url;
    this.apiKey = apiKey;
  }

  async send({ method, path, body, key = this.apiKey }: ClientRequest): Promise<TimedAnswer> {
    return await new Promise((resolve, reject) => {
      const startedAt = performance.now();
      const sent = request(`${this.url}${path}`, {
        method,
        agent: this.agent,
        headers: { 'x-session-api-key': key, 'content-type': 'application/json' },
      });
      sent.on('error', reject);
      sent.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('error', reject);
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString('utf8'),
            ms: performance.now() - startedAt,
          });
        });
      });
      sent.end(body);
    });
  }

  /** {@link send} for what must succeed: anything but 2xx throws. */
  async expectOk(given: ClientRequest): Promise<TimedAnswer> {
    const answer = await this.send(given);
    if (answer.status < 200 || answer.status > 299) {
      throw new Error(`${given.method} ${given.path} answered ${answer.status}: ${answer.body}`);
    }
    return answer;
  }

  /** {@link expectOk}, with the answer read as JSON. */
  async json(given: ClientRequest): Promise<unknown> {
    return JSON.parse((await this.expectOk(given)).body);
  }

  close(): void {
    this.agent.destroy();
  }
}
