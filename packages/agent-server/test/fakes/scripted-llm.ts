import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import { openAiRefusal } from './model-limits.js';
import { fails, refuses, type ScriptedAnswer } from './scripted-llm.answers.js';
import { answerChunks, answerWhole } from './scripted-llm.wire.js';
import { asChatBody, responseEvents, responsesRefusal, wholeResponse } from './scripted-responses.js';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content?: string | { type: string; text?: string }[] | null;
  reasoning_content?: string;
  reasoning?: string;
  reasoning_details?: unknown;
  tool_calls?: {
    id: string;
    type: string;
    function: { name: string; arguments: string };
    extra_content?: unknown;
  }[];
  tool_call_id?: string;
}

export interface ChatBody {
  model: string;
  stream?: boolean;
  tool_choice?: unknown;
  messages: ChatMessage[];
  tools?: { function: { name: string; description?: string; parameters: Record<string, unknown> } }[];
}

/** One request as the script sees it. */
export interface ChatRequest {
  /** Counts all requests, from 0. */
  index: number;
  headers: Record<string, string>;
  /** Path and query. */
  url: string;
  body: Record<string, unknown>;
  model: string;
  messages: ChatMessage[];
  /** The whole history as one text, to search in. */
  text: string;
  tools: string[];
  toolChoice: unknown;
  /** Parameters of the offered tools by name, as JSON schemas. */
  toolSchemas: Record<string, Record<string, unknown>>;
}

/** Decides by the request what the model answers. */
export type Script = (request: ChatRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** Answers in this order, the last one for ever. */
export function inOrder(...answers: ScriptedAnswer[]): Script {
  return ({ index }) => answers[Math.min(index, answers.length - 1)] ?? { kind: 'answer', text: 'done' };
}

export interface ScriptedLlmOptions {
  /** 0 (any) by default. */
  port?: number;
  /** Address to listen on; 127.0.0.1 by default. */
  host?: string;
  /** Pause between two chunks of an answer, for demonstrations; 0 by default. */
  chunkDelayMs?: number;
  /** Why a body is refused, or null. The rules for our own requests, by default. */
  refusalOf?: (body: unknown) => string | null;
}

/**
 * A model behind OpenAI's two APIs over real HTTP, Chat Completions and Responses, whose answers a script decides.
 * It shows that loops, tools and failures work; it says nothing about what a model can do.
 */
export class ScriptedLlm {
  readonly requests: ChatRequest[] = [];
  /** Why requests were refused that no real server would take; the script does not see them. */
  readonly refusals: string[] = [];
  /** Value for `llm_base_url`. */
  readonly url: string;
  /** May be changed at any time. */
  script: Script;
  private readonly server: Server;
  private readonly chunkDelayMs: number;
  private readonly refusalOf: (body: unknown) => string | null;

  private constructor(server: Server, url: string, script: Script, options: ScriptedLlmOptions) {
    this.server = server;
    this.url = url;
    this.script = script;
    this.chunkDelayMs = options.chunkDelayMs ?? 0;
    this.refusalOf = options.refusalOf ?? openAiRefusal;
  }

  static async start(script: Script, options: ScriptedLlmOptions = {}): Promise<ScriptedLlm> {
    let self: ScriptedLlm;
    const server = createServer((request, response) => {
      self.serve(request, response).catch((error: unknown) => {
        if (!response.headersSent) {
          response.writeHead(500, { 'content-type': 'application/json' });
        }
        response.end(JSON.stringify({ error: { message: String(error) } }));
      });
    });
    const host = options.host ?? '127.0.0.1';
    const port = await startListening(server, options.port, host);
    self = new ScriptedLlm(server, `http://${host}:${port}/v1`, script, options);
    return self;
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }

  private async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path] = (incoming.url ?? '').split('?');
    if (incoming.method === 'GET' && path === '/v1/models') {
      // Names none in particular: a script answers as any model.
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ object: 'list', data: [] }));
      return;
    }
    if (incoming.method === 'POST' && path?.endsWith('/v1/responses') === true) {
      await this.serveResponses(incoming, response);
      return;
    }
    if (incoming.method !== 'POST' || path !== '/v1/chat/completions') {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `no such address: ${incoming.url ?? ''}` } }));
      return;
    }
    const body = (await json(incoming)) as ChatBody;
    const request = toRequest(body, body, incoming, this.requests.length);
    const refusal = this.refusalOf(body);
    if (refusal !== null) {
      this.refusals.push(refusal);
      await this.answer(fails(400, refusal), body, this.requests.length, response);
      return;
    }
    this.requests.push(request);
    await this.answer(await this.script(request), body, request.index, response);
  }

  private async serveResponses(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Object(await json(incoming));
    const asked = asChatBody(body);
    const request = toRequest(asked, body, incoming, this.requests.length);
    const refused = responsesRefusal(body);
    if (refused !== null) {
      this.refusals.push(refused.message);
      const error = { type: 'invalid_request_error', param: null, code: null, ...refused };
      await this.answer(refuses(400, { error }), asked, request.index, response);
      return;
    }
    this.requests.push(request);
    const answer = await this.script(request);
    if (answer.kind === 'hang' || answer.kind === 'status' || answer.kind === 'body') {
      await this.answer(answer, asked, request.index, response);
      return;
    }
    if (answer.kind === 'answer' && (!asked.stream || answer.isWhole === true)) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(wholeResponse(answer, body, request.index)));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const event of responseEvents(answer, body, request.index)) {
      response.write(`event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    if (answer.kind === 'cut') {
      response.write(': cut\n\n', () => response.destroy());
    } else if (answer.kind !== 'stall') {
      response.end();
    }
  }

  private async answer(
    answer: ScriptedAnswer,
    body: ChatBody,
    index: number,
    response: ServerResponse,
  ): Promise<void> {
    if (answer.kind === 'hang') {
      return;
    }
    if (answer.kind === 'status') {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      response.end(JSON.stringify({ error: { message: answer.message ?? '', type: 'scripted' } }));
      return;
    }
    if (answer.kind === 'body') {
      response.writeHead(answer.status, { 'content-type': answer.type, ...answer.headers });
      response.end(answer.body);
      return;
    }
    if (answer.kind === 'answer' && (body.stream !== true || answer.isWhole === true)) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answerWhole(answer, body, index)));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const chunks = answerChunks(answer, body, index);
    for (const [position, chunk] of chunks.entries()) {
      await ('pace' in answer ? answer.pace?.(position) : undefined);
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      if (this.chunkDelayMs > 0) {
        await wait(this.chunkDelayMs);
      }
    }
    if (answer.kind === 'cut') {
      // Flushed first, so that the client really sees a beginning.
      response.write(': cut\n\n', () => response.destroy());
    } else if (answer.kind === 'answer' || answer.kind === 'streamError') {
      response.end('data: [DONE]\n\n');
    }
  }
}

function toRequest(body: ChatBody, sent: object, incoming: IncomingMessage, index: number): ChatRequest {
  const tools = body.tools ?? [];
  return {
    index,
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    ),
    url: incoming.url ?? '',
    body: { ...sent },
    model: body.model,
    messages: body.messages,
    text: JSON.stringify(body.messages),
    tools: tools.map((tool) => tool.function.name),
    toolChoice: body.tool_choice,
    toolSchemas: Object.fromEntries(tools.map((tool) => [tool.function.name, tool.function.parameters])),
  };
}
