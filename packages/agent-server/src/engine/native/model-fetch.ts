import { APICallError } from 'ai';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import {
  jsonAt,
  jsonList,
  jsonNumber,
  jsonText,
  parseJson,
  isJsonObject,
  type JsonObject,
} from '@slipway/common/json-access.js';
import { bytesUpTo, clipText } from '../../clipped-text.js';
import { ADDRESS_HINT, LlmFailure, UnresponsiveModelError } from './llm-failure.js';
import { isRefused, isUnreadable, pageTitle, readRefusal, wantsResponses } from './refusal-words.js';

type Dispatcher = NonNullable<RequestInit['dispatcher']>;
/** That of `fetch` (https://nodejs.org/api/globals.html#custom-dispatcher). */
const DISPATCHER: unique symbol = Symbol.for('undici.globalDispatcher.1');

/** `fetch` itself waits for at most five minutes; a model that does not stream may think for longer. */
function patient(): Dispatcher | undefined {
  return (globalThis as { [DISPATCHER]?: Dispatcher })[DISPATCHER]?.compose(
    (dispatch) => (options, handler) => dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
  );
}

/** A fetch that fails when nothing arrives for that long, before the response or in the middle of it. */
export function idleTimeoutFetch(
  milliseconds: number,
  redirect: 'follow' | 'error' = 'follow',
): typeof fetch {
  return async (input, init) => {
    const timeout = new AbortController();
    const fail = (): void => timeout.abort(new UnresponsiveModelError(milliseconds));
    // An abandoned response must not keep the process alive.
    const timer = setTimeout(fail, milliseconds).unref();
    const signals = [timeout.signal, ...(init?.signal ? [init.signal] : [])];
    try {
      const dispatcher = patient();
      const response = await fetch(input, {
        ...init,
        redirect,
        signal: AbortSignal.any(signals),
        ...(dispatcher && { dispatcher }),
      });
      timer.refresh();
      if (response.body === null) {
        clearTimeout(timer);
        return response;
      }
      const restarting = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          timer.refresh();
          controller.enqueue(chunk);
        },
        flush: () => clearTimeout(timer),
      });
      return withBody(response, response.body.pipeThrough(restarting));
    } catch (error) {
      clearTimeout(timer);
      throw error;
    }
  };
}

/** The beginnings of lines in an event stream (WHATWG HTML, 9.2.6). */
const EVENT_STREAM = /^(data|event|id|retry)?:/;
const LONGEST_BEGINNING = 6;
const MAX_READ = 4_000_000;
const MAX_QUOTE = 300;
/** The beginning of a page is enough to say what it is. */
const MAX_PAGE = 20_000;

/** A completion in one piece becomes a stream; any other answer with status 200 an error that quotes it. */
export function checkedFetch(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null) {
      return response;
    }
    const [peeked, body] = response.body.tee();
    const beginning = await readBeginning(peeked);
    if (beginning === '' || isEventStream(beginning, response.headers.get('content-type'))) {
      return withBody(response, body);
    }
    const text = (await bytesUpTo(body, MAX_READ)).toString('utf8');
    return withBody(response, asStream(text, String(input instanceof Request ? input.url : input)));
  };
}

function isEventStream(beginning: string, contentType: string | null): boolean {
  return (
    EVENT_STREAM.test(beginning) ||
    (contentType?.startsWith('text/event-stream') === true && !/^[<[{]/.test(beginning))
  );
}

/** @throws LlmFailure or APICallError when it is no completion */
function asStream(body: string, url: string): string {
  const parsed = parseJson(body);
  const choices = jsonList(parsed, 'choices');
  if (isJsonObject(parsed) && jsonAt(choices[0], 'message') !== undefined) {
    const deltas = choices.map((choice) => ({ ...Object(choice), delta: jsonAt(choice, 'message') }));
    const chunk = { ...parsed, choices: deltas };
    return `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
  }
  if (isJsonObject(parsed) && parsed['object'] === 'response' && !isJsonObject(parsed['error'])) {
    return eventsOf(parsed)
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join('');
  }
  // Google's servers put the error into a list.
  const error = jsonAt([parsed].flat()[0], 'error');
  if (error !== undefined && error !== null) {
    const code =
      jsonNumber(error, 'code') ?? Number(jsonText(error, 'code') ?? jsonText(error, 'status') ?? 0);
    const statusCode = code >= 400 && code < 600 ? code : 502;
    throw new APICallError({
      message: 'an error with status 200',
      url,
      requestBodyValues: {},
      statusCode,
      responseBody: body,
    });
  }
  throw new LlmFailure(
    'LlmUnexpectedAnswer',
    `The model's server answered 200 with ${describeBody(body, parsed)}, not with a completion. ${ADDRESS_HINT}`,
    null,
  );
}

/** A whole answer of OpenAI's Responses API in the events of a streamed one. */
function eventsOf(response: JsonObject): object[] {
  const items = jsonList(response, 'output').flatMap((item, index) => {
    const part = (type: string, members: object): object => ({
      type: `response.${type}`,
      item_id: jsonText(item, 'id'),
      output_index: index,
      ...members,
    });
    const texts = jsonList(item, 'content').map((content) =>
      part('output_text.delta', { delta: jsonText(content, 'text') ?? jsonText(content, 'refusal') ?? '' }),
    );
    const summaries = jsonList(item, 'summary').flatMap((summary, summary_index) => [
      part('reasoning_summary_part.added', { summary_index }),
      part('reasoning_summary_text.delta', { summary_index, delta: jsonText(summary, 'text') ?? '' }),
    ]);
    const body = jsonText(item, 'type') === 'message' ? texts : summaries;
    return [part('output_item.added', { item }), ...body, part('output_item.done', { item })];
  });
  const end = response['status'] === 'incomplete' ? 'response.incomplete' : 'response.completed';
  return [{ type: 'response.created', response }, ...items, { type: end, response }];
}

function describeBody(body: string, parsed: unknown): string {
  const title = pageTitle(body);
  if (title !== null) {
    return title === '' ? 'an HTML page' : `an HTML page (“${title}”)`;
  }
  const quoted = clipText(body.slice(0, MAX_PAGE).replaceAll(/\s+/g, ' ').trim(), MAX_QUOTE);
  return `${parsed === undefined ? 'text' : 'JSON'} (${quoted})`;
}

/** Without white space in front; empty when there is nothing else. */
async function readBeginning(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body.values({ preventCancel: true })) {
    text = (text + decoder.decode(chunk, { stream: true })).trimStart();
    if (text.length >= LONGEST_BEGINNING || /^[:<[{]/.test(text)) {
      break;
    }
  }
  // Not waited for: it resolves only with the end of the other branch.
  void body.cancel();
  return text;
}

/** The SDK fails at the first chunk that is not as OpenAI sends it, so it gets no other. */
export function repairingFetch(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null) {
      return response;
    }
    const repaired = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
      .pipeThrough(chunkRepair())
      .pipeThrough(new TextEncoderStream());
    return withBody(response, repaired);
  };
}

function chunkRepair(): TransformStream<EventSourceMessage, string> {
  let hasEnded = false;
  return new TransformStream({
    transform: ({ data }, controller) => {
      // Some servers give no reason for the end, but mark it.
      const end = hasEnded ? null : { choices: [{ delta: {}, finish_reason: 'stop' }] };
      const chunk = data.trim() === '[DONE]' ? end : repairedChunk(data);
      hasEnded ||= jsonText(jsonList(chunk, 'choices')[0], 'finish_reason') !== null;
      if (chunk !== null) {
        controller.enqueue(`data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`);
      }
    },
  });
}

/** Null: it says nothing. */
function repairedChunk(data: string): JsonObject | string | null {
  const chunk = parseJson(data);
  if (!isJsonObject(chunk)) {
    return data.trim() === '' ? null : data;
  }
  const choices = jsonList(chunk, 'choices');
  const own = choices.length === 0 && (jsonText(chunk, 'message') ?? jsonText(chunk, 'detail')) !== null;
  const error = chunk['error'] ?? jsonAt(choices[0], 'error') ?? (own ? chunk : null);
  if (error !== null) {
    const message = jsonText(error, 'message') ?? jsonText(error, 'detail') ?? JSON.stringify(error);
    return { error: isJsonObject(error) ? { ...error, message } : error };
  }
  const { id, usage } = chunk;
  return {
    id: typeof id === 'string' ? id : '',
    choices: choices.map((choice) => ({
      delta: repairedDelta(jsonAt(choice, 'delta')),
      finish_reason: jsonText(choice, 'finish_reason'),
    })),
    ...(isJsonObject(usage) && { usage: repairedUsage(usage) }),
  };
}

function repairedUsage(usage: JsonObject): JsonObject {
  const prompt = jsonNumber(usage, 'prompt_tokens') ?? 0;
  // Gemini's and xAI's count what the model reasoned in the total only.
  const rest = (jsonNumber(usage, 'total_tokens') ?? 0) - prompt;
  const cached = // DeepSeek's name is the second.
    jsonNumber(usage, 'prompt_tokens_details', 'cached_tokens') ??
    jsonNumber(usage, 'prompt_cache_hit_tokens');
  return {
    prompt_tokens: prompt,
    completion_tokens: Math.max(jsonNumber(usage, 'completion_tokens') ?? 0, rest),
    prompt_tokens_details: { cached_tokens: Math.min(cached ?? 0, prompt) },
  };
}

const DELTA_TEXTS = ['reasoning_content', 'reasoning'];

function repairedDelta(delta: unknown): JsonObject {
  const { role: _, content, tool_calls: __, ...others } = isJsonObject(delta) ? delta : {};
  const texts = Object.entries(others).filter(
    ([name, value]) => !DELTA_TEXTS.includes(name) || typeof value === 'string',
  );
  return {
    ...Object.fromEntries(texts),
    ...((typeof content === 'string' || Array.isArray(content)) && { content }),
    tool_calls: jsonList(delta, 'tool_calls').map((call) => repairedCall(call)),
  };
}

function repairedCall(call: unknown): JsonObject {
  const args = jsonAt(call, 'function', 'arguments');
  return {
    ...(isJsonObject(call) && call),
    index: Number(jsonAt(call, 'index') ?? Number.NaN),
    id: jsonText(call, 'id') ?? jsonNumber(call, 'id')?.toString(),
    function: {
      name: jsonText(call, 'function', 'name'),
      arguments: isJsonObject(args) ? JSON.stringify(args) : args,
    },
  };
}

function withBody({ status, statusText, headers }: Response, body: ReadableStream | string): Response {
  return new Response(body, { status, statusText, headers });
}

/** Members of a request, and of the agent's messages in it, without which a model answers as well. */
const OPTIONAL = new Set([
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'stop',
  'stop_sequences',
  'reasoning_effort',
  'thinking',
  'stream',
  'stream_options',
  'max_tokens',
  'max_output_tokens',
  'include',
  'prompt_cache_key',
  // Some servers need these back.
  'reasoning',
  'reasoning.effort',
  'reasoning.summary',
  'reasoning_content',
  'reasoning_details',
  'reasoning_opaque',
  'thinking_blocks',
  'provider_specific_fields',
]);

/** A model that takes no temperature must not end each conversation of a user who has set one (`drop_params`). */
export class RefusedParameters {
  readonly #refused = new Map<string, ReadonlySet<string>>();

  /** What models thought, sealed by another account or machine of their server: it refuses the whole request. */
  readonly #unreadable = new Set<unknown>();

  /**
   * Leaves out what was refused before, and repeats a request without what is refused now. `isChatOnly`: the model is
   * offered by no other API, to which a refusal may point.
   */
  dropping(
    fetch: typeof globalThis.fetch,
    drops = true,
    isChatOnly: () => boolean = () => true,
  ): typeof globalThis.fetch {
    return async (input, init) => {
      const body = typeof init?.body === 'string' ? parseJson(init.body) : null;
      if (!isJsonObject(body)) {
        return await fetch(input, init);
      }
      const model = jsonText(body, 'model') ?? '';
      for (;;) {
        const refused = this.#refused.get(model) ?? new Set();
        const sent = without(body, refused, this.#unreadable);
        const response = await fetch(input, { ...init, body: JSON.stringify(sent) });
        if (response.status !== 400 && response.status !== 422) {
          return response;
        }
        const text = await response.text();
        const refusal = readRefusal(text);
        const sealed = jsonList(sent, 'input').flatMap((item) => jsonText(item, 'encrypted_content') ?? []);
        if (isUnreadable(refusal) && sealed.length > 0) {
          sealed.forEach((content) => this.#unreadable.add(content));
          continue;
        }
        const isElsewhere = 'messages' in body && !isChatOnly() && wantsResponses(refusal);
        const all = drops && !isElsewhere ? membersOf(sent).filter((name) => isRefused(text, name)) : [];
        const named = all.filter((name) => !all.some((other) => other.startsWith(`${name}.`)));
        if (named.length === 0) {
          return withBody(response, text);
        }
        // Of two that exclude each other, the first stays.
        const dropped = /\bboth\b/i.test(text) ? named.slice(-1) : named;
        const options = dropped.includes('stream') ? ['stream_options'] : [];
        this.#refused.set(model, new Set([...refused, ...dropped, ...options]));
      }
    };
  }
}

function without(
  body: JsonObject,
  refused: ReadonlySet<string>,
  unreadable: ReadonlySet<unknown>,
): JsonObject {
  const kept = (object: JsonObject, path = ''): JsonObject =>
    Object.fromEntries(Object.entries(object).filter(([name]) => !refused.has(path + name)));
  const { max_tokens: limit, messages, input, reasoning } = body;
  return {
    ...kept(body),
    ...(Array.isArray(messages) && {
      messages: messages.map((message: unknown) => (isJsonObject(message) ? kept(message) : message)),
    }),
    ...(Array.isArray(input) && {
      // By its id, an item would have to be followed by the one that it had at the server.
      input: jsonList(body, 'input').flatMap((item) => {
        const { id: _, ...rest } = isJsonObject(item) ? item : {};
        return unreadable.has(rest['encrypted_content']) ? [] : [rest];
      }),
    }),
    ...(isJsonObject(reasoning) && !refused.has('reasoning') && { reasoning: kept(reasoning, 'reasoning.') }),
    // The newer name of the same.
    ...(refused.has('max_tokens') && limit !== undefined && { max_completion_tokens: limit }),
  };
}

function membersOf(body: JsonObject): string[] {
  const { reasoning } = body;
  const all = [body, ...jsonList(body, 'messages')].flatMap((object) => Object.keys(Object(object)));
  const nested = isJsonObject(reasoning) ? Object.keys(reasoning).map((name) => `reasoning.${name}`) : [];
  return [...new Set([...all, ...nested])].filter((name) => OPTIONAL.has(name));
}
