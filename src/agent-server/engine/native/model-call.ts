import { jsonSchema, type LanguageModel, type ModelMessage, streamText, tool, type ToolSet } from 'ai';
import { LlmFailure, toLlmFailure } from './llm-failure.js';

// The SDK's warnings go to the console and may quote a prompt.
globalThis.AI_SDK_LOG_WARNINGS = false;

export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

export interface ModelRequest {
  model: LanguageModel;
  instructions: string;
  messages: ModelMessage[];
  tools: readonly OfferedTool[];
  /** `none`: the tools are offered because the history has calls of them, but must not be called. */
  toolChoice?: 'auto' | 'none';
  signal: AbortSignal;
}

export interface RequestedCall {
  id: string;
  name: string;
  /** As the model wrote it: usually JSON. */
  arguments: string;
}

/** A complete response of the model. */
export interface ModelResponse {
  id: string;
  text: string;
  reasoning: string;
  calls: RequestedCall[];
  /** null: the provider did not say. */
  promptTokens: number | null;
  completionTokens: number | null;
}

/** Waits; resolves early when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

const MAX_RETRIES = 3;
const FIRST_DELAY_MS = 1_000;
const MAX_RETRY_AFTER_MS = 30_000;

/**
 * Calls the model, with up to three retries when the provider is busy, broken or unreachable. The delays follow
 * `Retry-After`, which p-retry cannot.
 *
 * @throws LlmFailure when there is no response; the signal's reason when it aborts
 */
export async function callModelWithRetries(request: ModelRequest, wait: Wait): Promise<ModelResponse> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return requireContent(await callModel(request));
    } catch (error) {
      request.signal.throwIfAborted();
      const failure = toLlmFailure(error, Date.now());
      if (failure.retryAfterMs === null || attempt === MAX_RETRIES) {
        throw failure;
      }
      await wait(retryDelay(attempt, failure.retryAfterMs), request.signal);
      request.signal.throwIfAborted();
    }
  }
}

/**
 * Milliseconds before the next attempt: 1, 2, 4 s, or more if the provider asks for it, up to 30 s.
 *
 * @param attempt from 0
 */
export function retryDelay(attempt: number, retryAfterMs: number): number {
  return Math.max(FIRST_DELAY_MS * 2 ** attempt, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}

/**
 * Calls the model once. A response that breaks off is discarded as a whole.
 *
 * @throws whatever the SDK reports, unclassified
 */
async function callModel(request: ModelRequest): Promise<ModelResponse> {
  const { model, instructions, messages, tools, toolChoice = 'auto', signal } = request;
  const { stream } = streamText({
    model,
    instructions,
    messages,
    tools: toToolSet(tools),
    toolChoice,
    abortSignal: signal,
    // Our caller decides about retries.
    maxRetries: 0,
    onError: () => undefined,
  });
  const response: ModelResponse = {
    id: '',
    text: '',
    reasoning: '',
    calls: [],
    promptTokens: null,
    completionTokens: null,
  };
  const argumentsById = new Map<string, string>();
  for await (const part of stream) {
    switch (part.type) {
      case 'text-delta':
        response.text += part.text;
        break;
      case 'reasoning-delta':
        response.reasoning += part.text;
        break;
      case 'tool-input-delta':
        argumentsById.set(part.id, (argumentsById.get(part.id) ?? '') + part.delta);
        break;
      case 'tool-call':
        response.calls.push({
          id: part.toolCallId,
          name: part.toolName,
          arguments: argumentsById.get(part.toolCallId) ?? JSON.stringify(part.input),
        });
        break;
      case 'finish-step':
        response.id = part.response.id;
        response.promptTokens = part.usage.inputTokens ?? null;
        response.completionTokens = part.usage.outputTokens ?? null;
        break;
      case 'error':
        throw part.error;
      case 'abort':
        signal.throwIfAborted();
        throw new Error('the model was interrupted');
    }
  }
  return response;
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

function requireContent(response: ModelResponse): ModelResponse {
  if (response.text.trim() === '' && response.calls.length === 0) {
    throw new LlmFailure('LlmEmptyAnswer', 'The model answered nothing.', 0);
  }
  return response;
}
