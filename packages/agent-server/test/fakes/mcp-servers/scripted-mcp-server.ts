import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { startListening, stopServer } from '../../../../../test/support/start-listening.js';

/** A JSON-RPC message, as far as a test looks at it. */
export interface SeenMessage {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
}

/** The result of a request, or the response to it in the test's own words. */
type Answer = Record<string, unknown> | ((exchange: Exchange) => void | Promise<void>);

export interface Exchange {
  message: SeenMessage;
  request: IncomingMessage;
  response: ServerResponse;
  server: ScriptedMcpServer;
}

/** A tool server over streamable HTTP that answers as a test says, right or wrong. */
export class ScriptedMcpServer {
  /** What clients have sent, answers to requests of the server included. */
  readonly messages: SeenMessage[] = [];
  readonly requests: { method: string; path: string; session: string | undefined }[] = [];
  /** Answers by method, in place of the usual ones. */
  readonly answers = new Map<string, Answer>();
  /** Called first with each request; whether it has answered. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  tools: unknown[] = [tool('echo')];
  answersAs: 'json' | 'sse' = 'json';
  /** How it refuses a session that it does not know. */
  refusal = { status: 404, body: 'Session not found' };
  readonly sessions = new Set<string>();
  readonly url: string;
  private readonly streams = new Set<ServerResponse>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {
    this.url = `http://127.0.0.1:${port}/mcp`;
  }

  static async start(): Promise<ScriptedMcpServer> {
    let self: ScriptedMcpServer;
    const server = createServer((request, response) => {
      void self.handle(request, response);
    });
    self = new ScriptedMcpServer(server, await startListening(server));
    return self;
  }

  /** How often a method was called. */
  count(method: string): number {
    return this.messages.filter((message) => message.method === method).length;
  }

  /** Sends a message on the streams that clients hold open, once there is one. */
  push(message: object): void {
    for (const stream of this.streams) {
      stream.write(event(message));
    }
  }

  get listeners(): number {
    return this.streams.size;
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '' } = request;
    const header = request.headers['mcp-session-id'];
    const session = Array.isArray(header) ? header[0] : header;
    this.requests.push({ method, path, session });
    const body = await text(request);
    if (this.intercept(request, response)) {
      return;
    }
    const isBeginning = body.includes('"initialize"');
    if (!isBeginning && !this.sessions.has(session ?? '')) {
      response.writeHead(this.refusal.status, { 'content-type': 'text/plain' }).end(this.refusal.body);
      return;
    }
    switch (method) {
      case 'GET':
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        this.streams.add(response);
        response.on('close', () => this.streams.delete(response));
        break;
      case 'DELETE':
        this.sessions.delete(session ?? '');
        response.writeHead(200).end();
        break;
      default:
        await this.receive(JSON.parse(body), request, response);
    }
  }

  private async receive(
    message: SeenMessage,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    this.messages.push(message);
    if (message.id === undefined || message.method === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (message.method === 'initialize') {
      const session = randomUUID();
      this.sessions.add(session);
      response.setHeader('mcp-session-id', session);
    }
    const answer = this.answers.get(message.method) ?? this.usualAnswer(message);
    if (typeof answer === 'function') {
      await answer({ message, request, response, server: this });
      return;
    }
    const whole = { jsonrpc: '2.0', id: message.id, result: answer };
    if (this.answersAs === 'sse') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(event(whole));
    } else {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
    }
  }

  private usualAnswer({ method, params }: SeenMessage): Record<string, unknown> {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: params?.['protocolVersion'],
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'scripted', version: '1' },
        };
      case 'tools/list':
        return { tools: this.tools };
      default:
        return { content: [{ type: 'text', text: JSON.stringify(params?.['arguments']) }] };
    }
  }
}

/** A tool as servers list it. */
export function tool(name: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    ...changes,
  };
}

/** An event of a stream. */
export function event(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
