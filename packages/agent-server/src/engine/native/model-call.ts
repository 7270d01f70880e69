import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { jsonSchema, type ModelMessage, streamText, tool, type ToolSet } from 'ai';
import { FINISH } from '../../tools/finish.tool.js';
import type { Draft, EngineHost } from '../agent-engine.js';
import { AnswerWatch } from './answer-watch.js';
import { answerEnding } from './refusal-words.js';
import type { ChosenModel } from './language-model.js';
import { LlmFailure, toLlmFailure } from './llm-failure.js';
import { filterPrompt, type OfferedTool } from './prompt-filter.js';
import { type LeftOutImages, imagesIn, originOf } from './prompt-limits.js';
import { callsIn, type ModelResponse, ResponseParts, splitThinking } from './response-parts.js';
import { HELD_BACK } from './text-tools.js';
import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { conversationFailure, countUsage } from '../limits.js';

// The SDK's warnings go to the console and may quote a prompt.
globalThis.AI_SDK_LOG_WARNINGS = false;

export const CONTENT_FILTERED =
  'The model or its provider refused to answer because of the content (content filter). Write what you want in other words, or choose another model.';

export interface ModelRequest {
  model: ChosenModel;
  instructions: string;
  messages: ModelMessage[];
  tools: readonly OfferedTool[];
  /** `none`: the tools are offered because the history has calls of them, but must not be called. */
  toolChoice?: 'auto' | 'none';
  leftOutImages?: LeftOutImages;
  signal: AbortSignal;
  showDraft?: EngineHost['showDraft'];
}

export class PausedWhileWaiting extends Error {}

const BROKEN_ANSWER =
  'The model or its provider broke its answer off. Send a message to let it go on, or choose another model.';
const FULL_CONTEXT =
  "The model's context was full before its answer was complete. Choose a model with a larger one, or begin anew.";
const EMPTY_ANSWER = 'The model answered nothing. Send a message to let it go on, or choose another model.';

const REPEATS =
  'The model repeats the same text without end, so its answer was cut. Models that are small, or compressed too much, do so: another temperature (0.7, say) or another model may help.';

/** The most useless answers in one call, by failure code; few, because each of them is paid for. */
const MAX_ANSWERS = new Map([
  ['LlmEmptyAnswer', 4],
  ['ModelRepeats', 2],
]);

/** Repeated when the provider is busy, at the time that it names. @throws LlmFailure; PausedWhileWaiting */
export async function callModelWithRetries(
  request: ModelRequest,
  { host, wait, isQuiet = false }: Patience,
): Promise<ModelResponse> {
  const { settings } = host;
  const pause = isQuiet ? new AbortController().signal : host.pauseSignal();
  let waitedMs = 0;
  let useless = 0;
  for (let retries = 0; ; retries += 1) {
    try {
      const response = withThinkingApart(await callModel(request));
      const uselessAnswer = uselessness(response);
      if (uselessAnswer === null) {
        return response;
      }
      // It is paid for although it is thrown away.
      await countUsage(host, settings, response, request.messages, false);
      throw uselessAnswer;
    } catch (error) {
      request.showDraft?.(null);
      request.signal.throwIfAborted();
      const failure = toLlmFailure(error, Date.now());
      const { code, retryAfterMs: namedMs } = failure;
      useless += MAX_ANSWERS.has(code) ? 1 : 0;
      const isFinal = namedMs === null || useless >= (MAX_ANSWERS.get(code) ?? Infinity);
      const { parameters = {} } = settings.llm;
      const pauseMs = isFinal ? null : nextPause({ retries, waitedMs, namedMs }, parameters);
      if (pauseMs === null) {
        throw failure;
      }
      if (!isQuiet) {
        const detail = `${failure.message} The call is repeated in ${Math.ceil(pauseMs / 100) / 10} s.`;
        await host.append(conversationFailure(code === 'ModelRepeats' ? code : 'LlmRetried', detail));
      }
      await wait(pauseMs, AbortSignal.any([request.signal, pause]));
      waitedMs += pauseMs;
      request.signal.throwIfAborted();
      if (pause.aborted) {
        throw new PausedWhileWaiting('paused');
      }
    }
  }
}

/** Discards a response that breaks off as a whole. Throws what the SDK reports, unclassified. */
async function callModel(request: ModelRequest): Promise<ModelResponse> {
  const { model, toolChoice = 'auto', signal } = request;
  const { instructions, messages, tools } = filterPrompt(request, model.target);
  const stop = new AbortController();
  const { stream } = streamText({
    model: model.languageModel,
    instructions,
    messages,
    tools: toToolSet(tools),
    toolChoice,
    include: { rawChunks: true },
    abortSignal: AbortSignal.any([signal, stop.signal]),
    // Our caller decides about retries.
    maxRetries: 0,
    onError: () => undefined,
  });
  const end: Omit<ModelResponse, keyof Draft | 'calls' | 'parts' | 'message'> = {
    id: '',
    ending: 'complete',
    promptTokens: null,
    completionTokens: null,
    costUsd: null,
  };
  const collected = new ResponseParts();
  let finishing: string | null = null;
  let finish = '';
  const said = new AnswerWatch();
  const thought = new AnswerWatch();
  const held = new AnswerWatch();
  let repeats = false;
  const draft = (): Draft => {
    const { text, reasoning } = withThinkingApart(collected.answer());
    const parts = [text, begunMessage(finish)];
    const reasons = [reasoning, held.note].filter((part) => part !== '');
    return { text: parts.filter((part) => part !== '').join('\n\n'), reasoning: reasons.join('\n\n') };
  };
  for await (const part of stream) {
    collected.take(part);
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        repeats = (part.type === 'text-delta' ? said : thought).add(part.text);
        request.showDraft?.(draft);
        break;
      case 'raw': {
        end.costUsd = costIn(part.rawValue) ?? end.costUsd;
        const piece = jsonText(part.rawValue, HELD_BACK);
        if (piece !== null) {
          repeats = held.add(piece);
          if (held.isDue(Date.now())) {
            request.showDraft?.(draft);
          }
        }
        break;
      }
      case 'tool-input-start':
        finishing = part.toolName === FINISH ? part.id : finishing;
        break;
      case 'tool-input-delta':
        if (part.id === finishing) {
          finish += part.delta;
          request.showDraft?.(draft);
        }
        break;
      case 'finish-step':
        // OpenAI's Responses API has no reason for an answer that is complete.
        if (part.rawFinishReason === undefined && /^(error|interrupted)$/.test(part.finishReason)) {
          throw new Error('the stream ended before the answer');
        }
        end.id = part.response.id;
        end.ending = answerEnding(part.finishReason, part.rawFinishReason);
        // Servers that do not count send zeros.
        end.promptTokens = part.usage.inputTokens || null;
        end.completionTokens = part.usage.outputTokens || null;
        end.cacheReadTokens = part.usage.inputTokenDetails.cacheReadTokens;
        end.cacheWriteTokens = part.usage.inputTokenDetails.cacheWriteTokens;
        break;
      case 'error':
        throw part.error;
      case 'abort':
        signal.throwIfAborted();
        throw new Error('the model was interrupted');
    }
    if (repeats) {
      stop.abort();
      const { text, reasoning } = collected.answer();
      const nothing = { calls: [], parts: [], message: {} };
      return { ...end, ...nothing, text: text + held.text, reasoning, ending: 'endless' };
    }
  }
  const parts = collected.parts();
  return { ...end, ...collected.answer(), calls: callsIn(parts), parts, message: collected.message() };
}

/** Reads the cost from a chunk of either of OpenAI's APIs. */
function costIn(chunk: unknown): number | null {
  const cost = jsonNumber(chunk, 'usage', 'cost') ?? jsonNumber(chunk, 'response', 'usage', 'cost');
  return cost !== null && Number.isFinite(cost) && cost >= 0 ? cost : null;
}

/** The text for the user in arguments of `finish` that are still being written, without a half escape. */
function begunMessage(args: string): string {
  const [, text = ''] = /"message"\s*:\s*"((?:[^"\\]|\\u[\da-f]{4}|\\[^u])*)/i.exec(args) ?? [];
  return jsonText({ message: parseJson(`"${text}"`) }, 'message') ?? '';
}

/** Tools without `execute`: the SDK must not run them. */
function toToolSet(tools: readonly OfferedTool[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
}

function withThinkingApart<Answer extends Draft>(answer: Answer): Answer {
  const { text, reasoning } = splitThinking(answer.text);
  const all = [answer.reasoning, reasoning].filter((part) => part !== '');
  return { ...answer, text, reasoning: all.join('\n\n') };
}

function uselessness({ ending, text, calls }: ModelResponse): LlmFailure | null {
  if (ending === 'broken') {
    return new LlmFailure('LlmEmptyAnswer', BROKEN_ANSWER, 0);
  }
  if (ending === 'endless') {
    return new LlmFailure('ModelRepeats', REPEATS, 0);
  }
  if (ending === 'full') {
    return new LlmFailure('LlmContextFull', FULL_CONTEXT, null, { mayBeHistory: true });
  }
  if (text.trim() !== '' || calls.length > 0 || ending === 'cut') {
    return null;
  }
  return ending === 'filtered'
    ? new LlmFailure('LlmContentFiltered', CONTENT_FILTERED, null)
    : new LlmFailure('LlmEmptyAnswer', EMPTY_ANSWER, 0);
}

const MODEL = 'imagesRefusedBy';
const LEFT_OUT = 'imagesLeftOut';

/**
 * Calls the model. If it refuses images, asks again with notes in their place: first for those that it would load
 * itself, then for all. Remembers what the model accepts.
 * @throws LlmFailure the first one, if images are not the reason
 */
export async function callModelWithImages(request: ModelRequest, patience: Patience): Promise<ModelResponse> {
  const { host } = patience;
  const origin = originOf(request.model.target);
  const known = knownLimit(host, origin);
  try {
    return await callModelWithRetries({ ...request, leftOutImages: known }, patience);
  } catch (error) {
    if (!(error instanceof LlmFailure) || !error.mayBeImages) {
      throw error;
    }
    const images = imagesIn(request.messages);
    const limits: LeftOutImages[] =
      images.byAddress > 0 && images.byAddress < images.all ? ['addresses'] : [];
    for (const leftOutImages of images.all === 0 || known === 'all' ? [] : [...limits, 'all' as const]) {
      const response = await callModelWithRetries({ ...request, leftOutImages }, patience).catch(rejection);
      if (response !== null) {
        await remember(host, origin, leftOutImages, error.message);
        return response;
      }
    }
    throw error;
  }
}

function knownLimit(host: EngineHost, origin: string): LeftOutImages {
  const memory = host.memory();
  const limit = memory[MODEL] === origin ? jsonText(memory, LEFT_OUT) : null;
  return limit === 'all' || limit === 'addresses' ? limit : 'none';
}

async function remember(
  host: EngineHost,
  origin: string,
  leftOut: LeftOutImages,
  reason: string,
): Promise<void> {
  await host.remember({ [MODEL]: origin, [LEFT_OUT]: leftOut });
  const which = leftOut === 'all' ? 'images' : 'images from addresses';
  const detail = `The model refused ${which}, so it works without them: ${reason}`;
  await host.append(conversationFailure('ImagesLeftOut', detail));
}

/** Returns null if the images may have been refused again. @throws every other error */
function rejection(error: unknown): null {
  if (error instanceof LlmFailure && error.mayBeImages) {
    return null;
  }
  throw error;
}

/** Waits; resolves early when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

/** How calls wait: as the settings of their conversation say, told as events, and until the user pauses. */
export interface Patience {
  host: EngineHost;
  wait: Wait;
  /** Beside a run: nothing is logged, and a pause does not concern it. */
  isQuiet?: boolean;
}

export type RetrySettings = Pick<
  ModelParameters,
  'num_retries' | 'retry_multiplier' | 'retry_min_wait' | 'retry_max_wait'
>;

const MIN_RETRIES = 5;
/** Together, pauses outlast the minute for which providers count requests and tokens. */
const MIN_TOTAL_MS = 60_000;
const MULTIPLIER_SECONDS = 2;
const MAX_WAIT_SECONDS = 64;
/** Users prefer an error to a longer wait, and some providers name the end of the day for what passes sooner. */
const MAX_NAMED_MS = 300_000;

interface Attempt {
  retries: number;
  waitedMs: number;
  /** What the provider asks for; 0: it does not say. */
  namedMs: number;
}

/** Milliseconds before the next retry: the time that the provider names, else 2, 4, 8 … s; null if there is none. */
export function nextPause(
  { retries, waitedMs, namedMs: named }: Attempt,
  { num_retries, retry_multiplier, retry_min_wait, retry_max_wait }: RetrySettings,
): number | null {
  const most = num_retries ?? null;
  if (most !== null && retries >= most) {
    return null;
  }
  const namedMs = named > MAX_NAMED_MS ? 0 : named;
  if (most === null && retries >= MIN_RETRIES) {
    return waitedMs >= MIN_TOTAL_MS ? null : Math.max(namedMs, MIN_TOTAL_MS - waitedMs);
  }
  const growing = (retry_multiplier ?? MULTIPLIER_SECONDS) * 2 ** retries;
  const seconds = Math.max(retry_min_wait ?? 0, Math.min(growing, retry_max_wait ?? MAX_WAIT_SECONDS));
  return namedMs || seconds * 1000;
}
