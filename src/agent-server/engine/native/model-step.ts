import { jsonSchema, type LanguageModel, type ModelMessage, streamText, tool, type ToolSet } from 'ai';

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
export async function modelStep(request: StepRequest): Promise<StepAnswer> {
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
