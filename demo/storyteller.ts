import { STATUS_CODES } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 100;
const TIMEOUT_MS = 300_000;

interface ShownRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  /** The key of a sandbox, for requests to its agent server; Nadia's own by default. */
  sandboxKey?: string;
}

export interface ServerSentEvent {
  id: string;
  event: string;
  data: unknown;
}

/** Sends requests, and prints each as the line that a person would type, with the response. */
export class Storyteller {
  private readonly url: string;
  private readonly apiKey: string;
  private readonly print: (text: string) => void;

  constructor(url: string, apiKey: string, print: (text: string) => void) {
    this.url = url;
    this.apiKey = apiKey;
    this.print = print;
  }

  /** Prints a paragraph of the story. */
  say(text: string): void {
    this.print(`\n${text}\n\n`);
  }

  /** Prints the variable that the following lines use. */
  introduceKey(): void {
    this.print(`  $ KEY=${this.apiKey}\n`);
  }

  /** Prints the variable that requests to an agent server use. */
  introduceSandboxKey(key: string): void {
    this.print(`  $ SANDBOX_KEY=${key}\n`);
  }

  /**
   * Sends the request, and prints it and the response. `show` turns the body into lines.
   *
   * @throws Error for an unsuccessful response
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
      throw new Error(`${request.path} responded ${response.status}: ${JSON.stringify(body)}`);
    }
    return body;
  }

  /** Prints what GitHub sends by itself, and the status that it gets; returns when it was sent (`performance.now()`). */
  async event(what: string, send: () => Promise<Response>): Promise<number> {
    const sentAt = performance.now();
    const { ok, status } = await send();
    const ms = Math.round(performance.now() - sentAt);
    this.print(`  GitHub sends ${what}, signed: ${status} ${STATUS_CODES[status] ?? ''} (${ms} ms)\n`);
    if (!ok) {
      throw new Error(`${what} was refused with status ${status}`);
    }
    return sentAt;
  }

  /**
   * Repeats a GET until `isDone`. Prints the request once, and the result of `show` whenever it changes, with the time
   * since `startedAt`.
   */
  async follow(
    path: string,
    show: (body: unknown) => string,
    isDone: (body: unknown) => boolean,
    startedAt = performance.now(),
  ): Promise<unknown> {
    const request: ShownRequest = { method: 'GET', path };
    this.print(`${curlLine(this.url, request)}\n`);
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
      if (ms > TIMEOUT_MS) {
        throw new Error(`${path} timed out at: ${line}`);
      }
      await delay(POLL_MS);
    }
  }

  /** Reads server-sent events until `isLast`, and prints the result of `show` for each, unless that is null. */
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
      signal: AbortSignal.timeout(TIMEOUT_MS),
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
    // curl uses POST by itself when there is a body.
    ...(method === 'GET' || body !== undefined ? [] : [`-X ${method}`]),
    `-H "X-Session-API-Key: ${sandboxKey === undefined ? '$KEY' : '$SANDBOX_KEY'}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`]),
    `'${url}${path}'`,
  ];
  const data = body === undefined ? '' : ` \\\n      -d '${JSON.stringify(body)}'`;
  return `  $ ${parts.join(' ')}${data}`;
}

/**
 * Reads the events of a stream, and only the part of the format that the service uses: one line each of id, event and
 * data.
 */
async function* serverSentEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  if (response.status !== 200 || !response.body) {
    throw new Error(`the stream responded ${response.status}: ${await response.text()}`);
  }
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const data = field(frame, 'data');
      if (data !== null) {
        yield { id: field(frame, 'id') ?? '', event: field(frame, 'event') ?? '', data: JSON.parse(data) };
      }
    }
  }
}

function field(frame: string, name: string): string | null {
  const line = frame.split('\n').find((candidate) => candidate.startsWith(`${name}:`));
  return line === undefined ? null : line.slice(name.length + 1).trimStart();
}
