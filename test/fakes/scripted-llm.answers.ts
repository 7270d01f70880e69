export interface ScriptedToolCall {
  name: string;
  /** Text is sent as it is, so it may be broken JSON. */
  arguments: Record<string, unknown> | string;
  id?: string;
}

export interface ScriptedUsage {
  promptTokens: number;
  completionTokens: number;
}

/** What the model says, or what goes wrong instead. */
export type ScriptedAnswer =
  | {
      kind: 'answer';
      text?: string;
      reasoning?: string;
      calls?: ScriptedToolCall[];
      /** Estimated from the lengths by default. */
      usage?: ScriptedUsage;
    }
  | { kind: 'status'; status: number; message?: string; headers?: Record<string, string> }
  /** Accepts the request and never sends a byte. */
  | { kind: 'hang' }
  /** Sends the beginning of an answer, then destroys the connection. */
  | { kind: 'cut'; text: string }
  /** Sends the beginning of an answer, then nothing more. */
  | { kind: 'stall'; text: string };

/** A final answer in words. */
export function say(text: string, usage?: ScriptedUsage): ScriptedAnswer {
  return { kind: 'answer', text, usage };
}

/** One tool call, optionally with words before it. */
export function call(
  name: string,
  args: Record<string, unknown> | string,
  extra: { text?: string; id?: string; usage?: ScriptedUsage } = {},
): ScriptedAnswer {
  return {
    kind: 'answer',
    text: extra.text,
    usage: extra.usage,
    calls: [{ name, arguments: args, id: extra.id }],
  };
}

/** Several tool calls in one answer. */
export function calls(...all: ScriptedToolCall[]): ScriptedAnswer {
  return { kind: 'answer', calls: all };
}

/** A refusal of the provider. */
export function fails(
  status: number,
  message = `status ${status}`,
  headers: Record<string, string> = {},
): ScriptedAnswer {
  return { kind: 'status', status, message, headers };
}
