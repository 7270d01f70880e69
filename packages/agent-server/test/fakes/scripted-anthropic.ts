import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { anthropicRefusal } from './model-limits.js';
import { pieces } from './scripted-llm.wire.js';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';

/** What the model says in one answer, in this order. */
export interface AnthropicAnswer {
  thinking?: string;
  text?: string;
  call?: { id: string; name: string; input: Record<string, unknown> };
  /** `stop_reason`; by default `tool_use` or `end_turn`. With null, the stream ends before it says one. */
  stop?: string | null;
  usage: { input: number; output: number };
}

/** An answer with an error status. */
export interface AnthropicRefusal {
  status: number;
  message: string;
}

export interface AnthropicRequest {
  headers: IncomingMessage['headers'];
  body: Record<string, unknown>;
  path: string;
}

/** Decides by the body of a request; null means that it never answers. */
export type AnthropicScript = (body: Record<string, unknown>) => AnthropicAnswer | AnthropicRefusal | null;
export type AnthropicTurn = AnthropicRefusal | Partial<AnthropicAnswer>;

/**
 * Anthropic's Messages API over real HTTP, streamed and whole; it gives the answers of a list, the last one for ever, or
 * those of a script.
 */
export class ScriptedAnthropic {
  readonly requests: AnthropicRequest[] = [];
  /** Why requests were refused that the real API would not take either. */
  readonly refusals: string[] = [];

  private constructor(
    private readonly server: Server,
    /** Base address, with the version. */
    readonly url: string,
  ) {}

  /** @param refusalOf why a body is refused; null: it is not */
  static async start(
    answers: readonly (AnthropicAnswer | AnthropicRefusal)[] | AnthropicScript,
    refusalOf: (body: unknown) => string | null = anthropicRefusal,
  ): Promise<ScriptedAnthropic> {
    let self: ScriptedAnthropic | null = null;
    const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body: Record<string, unknown> = JSON.parse((await text(request)) || '{}');
      const refusal = refusalOf(body);
      if (refusal !== null) {
        self?.refusals.push(refusal);
        refuse(response, { status: 400, message: refusal });
        return;
      }
      const { pathname } = new URL(request.url ?? '/', 'http://fake');
      const index = self?.requests.push({ headers: request.headers, body, path: pathname }) ?? 1;
      const answer =
        typeof answers === 'function' ? answers(body) : answers[Math.min(index, answers.length) - 1];
      // Gateways have it below a path of their own.
      if (!pathname.endsWith('/v1/messages') || answer === undefined) {
        response.writeHead(404).end();
      } else if (answer !== null && 'status' in answer) {
        refuse(response, answer);
      } else if (answer !== null && body['stream'] === true) {
        stream(response, answer, `msg_${index}`);
      } else if (answer !== null) {
        whole(response, answer, `msg_${index}`);
      }
    };
    const server = createServer((request, response) => void serve(request, response));
    const port = await startListening(server);
    self = new ScriptedAnthropic(server, `http://127.0.0.1:${port}/v1`);
    return self;
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }
}

function refuse(response: ServerResponse, { status, message }: AnthropicRefusal): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }));
}

function stream(response: ServerResponse, answer: AnthropicAnswer, id: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (type: string, members: Record<string, unknown>): void => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
  };
  const { input, output } = answer.usage;
  send('message_start', {
    message: {
      id,
      type: 'message',
      role: 'assistant',
      model: 'claude-scripted',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens: 1 },
    },
  });
  for (const [index, { block, deltas }] of blocksOf(answer).entries()) {
    send('content_block_start', { index, content_block: block });
    deltas.forEach((delta) => send('content_block_delta', { index, delta }));
    send('content_block_stop', { index });
  }
  send('ping', {});
  if (answer.stop === null) {
    response.end();
    return;
  }
  const stop = answer.stop ?? (answer.call === undefined ? 'end_turn' : 'tool_use');
  send('message_delta', {
    delta: { stop_reason: stop, stop_sequence: null },
    usage: { output_tokens: output },
  });
  send('message_stop', {});
  response.end();
}

function whole(response: ServerResponse, { text = '', call, usage }: AnthropicAnswer, id: string): void {
  const used = call === undefined ? [] : [{ type: 'tool_use', ...call }];
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({
      id,
      type: 'message',
      role: 'assistant',
      model: 'claude-scripted',
      content: [{ type: 'text', text }, ...used],
      stop_reason: call === undefined ? 'end_turn' : 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: usage.input, output_tokens: usage.output },
    }),
  );
}

interface Block {
  block: Record<string, unknown>;
  deltas: Record<string, unknown>[];
}

function blocksOf({ thinking, text, call }: AnthropicAnswer): Block[] {
  const blocks: Block[] = [];
  if (thinking !== undefined) {
    const deltas = pieces(thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece }));
    const block = { type: 'thinking', thinking: '', signature: '' };
    blocks.push({ block, deltas: [...deltas, { type: 'signature_delta', signature: 'signed' }] });
  }
  if (text !== undefined) {
    const deltas = pieces(text).map((piece) => ({ type: 'text_delta', text: piece }));
    blocks.push({ block: { type: 'text', text: '' }, deltas });
  }
  if (call !== undefined) {
    const json = pieces(JSON.stringify(call.input));
    blocks.push({
      block: { type: 'tool_use', id: call.id, name: call.name, input: {} },
      deltas: json.map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
    });
  }
  return blocks;
}
