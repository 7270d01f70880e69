import { STATUS_CODES } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { type ServerSentEvent, serverSentEvents } from './server-sent-events.js';

export interface ShownRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  /** The key of a sandbox, for requests to its agent server; Nadia's own by default. */
  sandboxKey?: string;
}

/** Asked this often for something that takes a while. */
const POLL_MS = 100;
const PATIENCE_MS = 60_000;

/** Sends requests and prints each as the line that a person would type, with what came back. */
export class Storyteller {
  private readonly url: string;
  private readonly apiKey: string;
  private readonly print: (text: string) => void;

  constructor(url: string, apiKey: string, print: (text: string) => void) {
    this.url = url;
    this.apiKey = apiKey;
    this.print = print;
  }

  /** A paragraph of the story. */
  say(text: string): void {
    this.print(`\n${text}\n\n`);
  }

  /** Says what the following lines use. */
  introduceKey(): void {
    this.print(`  $ KEY=${this.apiKey}\n`);
  }

  /** Says what requests to an agent server use. */
  introduceSandboxKey(key: string): void {
    this.print(`  $ SANDBOX_KEY=${key}\n`);
  }

  /**
   * Sends the request, prints it and the answer; `show` turns the body into lines.
   *
   * @throws Error for an answer that is none of success
   */
  async request(request: ShownRequest, show: (body: unknown) => string[]): Promise<unknown> {
    this.print(`${curlLine(this.url, request)}\n`);
    const startedAt = performance.now();
    const response = await this.send(request);
    const body: unknown = await response.json();
    const ms = Math.round(performance.now() - startedAt);
    const providerStatus = response.headers.get('x-provider-status');
    const lines = [
      `${response.status} ${STATUS_CODES[response.status] ?? ''} (${ms} ms)`,
      ...(providerStatus === null ? [] : [`X-Provider-Status: ${providerStatus}`]),
      ...show(body),
    ];
    this.print(`${lines.map((line) => `  ${line}`).join('\n')}\n`);
    if (!response.ok) {
      throw new Error(`${request.path} answered ${response.status}: ${JSON.stringify(body)}`);
    }
    return body;
  }

  /** Repeats a GET until its answer is as hoped for; prints the request once and what `show` says whenever that is new. */
  async follow(
    path: string,
    show: (body: unknown) => string,
    isDone: (body: unknown) => boolean,
  ): Promise<unknown> {
    const request: ShownRequest = { method: 'GET', path };
    this.print(`${curlLine(this.url, request)}\n`);
    const startedAt = performance.now();
    let last = '';
    for (;;) {
      const body: unknown = await (await this.send(request)).json();
      const line = show(body);
      const ms = Math.round(performance.now() - startedAt);
      if (line !== last) {
        this.print(`  ${`${ms} ms`.padStart(8)}  ${line}\n`);
        last = line;
      }
      if (isDone(body)) {
        return body;
      }
      if (ms > PATIENCE_MS) {
        throw new Error(`${path} is still at: ${line}`);
      }
      await wait(POLL_MS);
    }
  }

  /** Reads a stream of server-sent events, printing what `show` makes of each (null: nothing), until `isLast`. */
  async stream(
    path: string,
    show: (event: ServerSentEvent) => string | null,
    isLast: (event: ServerSentEvent) => boolean,
    lastEventId: string | null = null,
  ): Promise<string> {
    const header = lastEventId === null ? '' : `-H 'Last-Event-ID: ${lastEventId}' `;
    this.print(`  $ curl -N -H "X-Session-API-Key: $KEY" ${header}'${this.url}${path}'\n`);
    const response = await fetch(`${this.url}${path}`, {
      headers: {
        'X-Session-API-Key': this.apiKey,
        ...(lastEventId !== null && { 'Last-Event-ID': lastEventId }),
      },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    for await (const event of serverSentEvents(response)) {
      const line = show(event);
      if (line !== null) {
        this.print(`  ${event.id.padStart(3)}  ${line}\n`);
      }
      if (isLast(event)) {
        return event.id;
      }
    }
    throw new Error(`${path} ended early`);
  }

  private send({ method, path, body, sandboxKey }: ShownRequest): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method,
      headers: {
        'X-Session-API-Key': sandboxKey ?? this.apiKey,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}

function curlLine(url: string, { method, path, body, sandboxKey }: ShownRequest): string {
  const parts = [
    'curl -i',
    // With a body curl sends POST by itself.
    ...(method === 'GET' || body !== undefined ? [] : [`-X ${method}`]),
    `-H "X-Session-API-Key: ${sandboxKey === undefined ? '$KEY' : '$SANDBOX_KEY'}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`]),
    `'${url}${path}'`,
  ];
  const data = body === undefined ? '' : ` \\\n      -d '${JSON.stringify(body)}'`;
  return `  $ ${parts.join(' ')}${data}`;
}
