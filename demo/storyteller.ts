import { STATUS_CODES } from 'node:http';

export interface ShownRequest {
  method: 'GET' | 'POST';
  path: string;
  /** Sent as JSON. */
  body?: unknown;
}

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

  /** Sends the request, prints it and the answer; `show` turns the body into lines. */
  async request(request: ShownRequest, show: (body: unknown) => string[]): Promise<void> {
    this.print(`${curlLine(this.url, request)}\n`);
    const startedAt = performance.now();
    const response = await fetch(`${this.url}${request.path}`, {
      method: request.method,
      headers: {
        'X-Session-API-Key': this.apiKey,
        ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    });
    const body: unknown = await response.json();
    const ms = Math.round(performance.now() - startedAt);
    const providerStatus = response.headers.get('x-provider-status');
    const lines = [
      `${response.status} ${STATUS_CODES[response.status] ?? ''} (${ms} ms)`,
      ...(providerStatus === null ? [] : [`X-Provider-Status: ${providerStatus}`]),
      ...show(body),
    ];
    this.print(`${lines.map((line) => `  ${line}`).join('\n')}\n`);
  }
}

function curlLine(url: string, { path, body }: ShownRequest): string {
  const parts = [
    'curl -i',
    `-H "X-Session-API-Key: $KEY"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`]),
    `'${url}${path}'`,
  ];
  // With a body curl sends POST by itself.
  const data = body === undefined ? '' : ` \\\n      -d '${JSON.stringify(body)}'`;
  return `  $ ${parts.join(' ')}${data}`;
}
