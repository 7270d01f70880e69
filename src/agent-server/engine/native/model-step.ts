import { jsonSchema, type LanguageModel, type ModelMessage, streamText, tool, type ToolSet } from 'ai';
import { LlmFailure, toLlmFailure } from './llm-failure.js';

// Its warnings go to the console and may quote a prompt.
globalThis.AI_SDK_LOG_WARNINGS = false;

export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

export interface StepRequest {
  model: LanguageModel;
  instructions: string;
  messages: ModelMessage[];
  tools: readonly OfferedTool[];
  /** `none`: the tools are shown, for a history that has calls of them, and must not be called. */
  toolChoice?: 'auto' | 'none';
  signal: AbortSignal;
}

export interface RequestedCall {
  id: string;
  name: string;
  /** As the model wrote it: JSON if all is well. */
  arguments: string;
}

/** One whole answer of the model. */
export interface StepAnswer {
  id: string;
  text: string;
  reasoning: string;
  calls: RequestedCall[];
  /** null: the provider did not say. */
  promptTokens: number | null;
  completionTokens: number | null;
}

/**
 * Asks the model once. Nothing of an answer that breaks off is handed on.
 *
 * @throws whatever the SDK reports, unread
 */
async function modelStep(request: StepRequest): Promise<StepAnswer> {
  const { model, instructions, messages, tools, toolChoice = 'auto', signal } = request;
  const { stream } = streamText({
    model,
    instructions,
    messages,
    tools: toToolSet(tools),
    toolChoice,
    abortSignal: signal,
    // Who repeats an attempt, and when, is decided by our caller.
    maxRetries: 0,
    onError: () => undefined,
  });
  const answer: StepAnswer = {
    id: '',
    text: '',
    reasoning: '',
    calls: [],
    promptTokens: null,
    completionTokens: null,
  };
  const raw = new Map<string, string>();
  for await (const part of stream) {
    switch (part.type) {
      case 'text-delta':
        answer.text += part.text;
        break;
      case 'reasoning-delta':
        answer.reasoning += part.text;
        break;
      case 'tool-input-delta':
        raw.set(part.id, (raw.get(part.id) ?? '') + part.delta);
        break;
      case 'tool-call':
        answer.calls.push({
          id: part.toolCallId,
          name: part.toolName,
          arguments: raw.get(part.toolCallId) ?? JSON.stringify(part.input),
        });
        break;
      case 'finish-step':
        answer.id = part.response.id;
        answer.promptTokens = part.usage.inputTokens ?? null;
        answer.completionTokens = part.usage.outputTokens ?? null;
        break;
      case 'error':
        throw part.error;
      case 'abort':
        signal.throwIfAborted();
        throw new Error('the model was interrupted');
    }
  }
  return answer;
}

/** Without `execute`: what a call does, and whether it is done, is not the SDK's to decide. */
function toToolSet(tools: readonly OfferedTool[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
}

/** Waits; ends early, without an error, when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

const RETRIES = 3;
const FIRST_DELAY_MS = 1_000;
const MAX_RETRY_AFTER_MS = 30_000;

/**
 * Asks the model, up to three times again when the provider is busy, broken or away.
 *
 * @throws LlmFailure when there is no answer; the signal's reason when it aborts
 */
export async function patientStep(request: StepRequest, wait: Wait): Promise<StepAnswer> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return notEmpty(await modelStep(request));
    } catch (error) {
      request.signal.throwIfAborted();
      const failure = toLlmFailure(error, Date.now());
      if (failure.retryAfterMs === null || attempt === RETRIES) {
        throw failure;
      }
      await wait(retryDelay(attempt, failure.retryAfterMs), request.signal);
      request.signal.throwIfAborted();
    }
  }
}

/**
 * Milliseconds before the next attempt: 1, 2, 4 s, or what the provider asks for up to 30 s.
 *
 * @param attempt from 0
 */
export function retryDelay(attempt: number, retryAfterMs: number): number {
  return Math.max(FIRST_DELAY_MS * 2 ** attempt, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}

function notEmpty(answer: StepAnswer): StepAnswer {
  if (answer.text.trim() === '' && answer.calls.length === 0) {
    throw new LlmFailure('LlmEmptyAnswer', 'The model answered nothing.', 0);
  }
  return answer;
}
