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
import { pageTitle } from './refusal-words.js';

type Dispatcher = NonNullable<RequestInit['dispatcher']>;
/** The symbol that `fetch` reads (https://nodejs.org/api/globals.html#custom-dispatcher). */
const DISPATCHER: unique symbol = Symbol.for('undici.globalDispatcher.1');

function globalDispatcher(): Dispatcher | undefined {
  return (globalThis as { [DISPATCHER]?: Dispatcher })[DISPATCHER];
}

/**
 * `fetch` itself waits for at most five minutes; a model that does not stream may think for longer. Which dispatcher has the
 * request is looked up when it leaves: the first call of `fetch` sets up proxies, and others change what is exempt.
 */
function patient(): Dispatcher | undefined {
  const before = globalDispatcher();
  const late: Pick<Dispatcher, 'dispatch'> | undefined = before && {
    dispatch: (options, handler) =>
      (globalDispatcher() ?? before).dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
  };
  return late as Dispatcher | undefined;
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

/** Skips leading white space; returns an empty text if there is nothing else. */
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
  /** Arguments by call. */
  const calls: { index: unknown; written: string }[] = [];
  return new TransformStream({
    flush: (controller) => {
      // Some gateways leave out the end of a stream; a call that can be read has come whole.
      if (!hasEnded && calls.length > 0 && calls.every(({ written }) => isJsonObject(parseJson(written)))) {
        const end = { choices: [{ delta: {}, finish_reason: 'tool_calls' }] };
        controller.enqueue(`data: ${JSON.stringify(end)}\n\n`);
      }
    },
    transform: ({ data }, controller) => {
      // Some servers give no reason for the end, but mark it.
      const end = hasEnded ? null : { choices: [{ delta: {}, finish_reason: 'stop' }] };
      const chunk = data.trim() === '[DONE]' ? end : repairedChunk(data);
      hasEnded ||= jsonText(jsonList(chunk, 'choices')[0], 'finish_reason') !== null;
      for (const call of jsonList(jsonAt(jsonList(chunk, 'choices')[0], 'delta'), 'tool_calls')) {
        const index = jsonAt(call, 'index');
        const begun = jsonText(call, 'function', 'name') === null;
        const known = begun ? calls.findLast((entry) => Object.is(entry.index, index)) : undefined;
        const written = jsonText(call, 'function', 'arguments') ?? '';
        if (known === undefined) {
          calls.push({ index, written });
        } else {
          known.written += written;
        }
      }
      if (chunk !== null) {
        controller.enqueue(`data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`);
      }
    },
  });
}

/** Returns null for a blank chunk. */
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
    ...costOf(usage),
  };
}

/** What OpenRouter, LiteLLM and others charge. With a key of one's own at OpenRouter, the provider's bill comes besides. */
function costOf(usage: JsonObject): JsonObject {
  const cost = jsonNumber(usage, 'cost');
  const besides =
    usage['is_byok'] === true ? jsonNumber(usage, 'cost_details', 'upstream_inference_cost') : 0;
  return cost === null ? {} : { cost: cost + (besides ?? 0) };
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

export function withBody({ status, statusText, headers }: Response, body: ReadableStream | string): Response {
  return new Response(body, { status, statusText, headers });
}
