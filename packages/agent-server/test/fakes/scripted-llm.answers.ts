export interface ScriptedToolCall {
  name: string;
  /** Text is sent as it is, so it may be broken JSON. */
  arguments: Record<string, unknown> | string;
  id?: string;
  /** Sent with the call, as some servers do. */
  members?: Record<string, unknown>;
}

export interface ScriptedUsage {
  promptTokens: number;
  completionTokens: number;
  /** Cached part of the prompt; only the Responses API tells it. */
  cachedTokens?: number;
}

/** Called before each chunk, which is sent when it resolves: so a test says how much of an answer there is. */
export type Pace = (chunk: number) => Promise<unknown>;

/** What the model says, or what goes wrong instead. */
export type ScriptedAnswer =
  | {
      kind: 'answer';
      text?: string;
      reasoning?: string;
      /** The member that the reasoning comes in; `reasoning_content` by default. */
      reasoningMember?: string;
      /** Further members of the message, in a chunk of their own. */
      members?: Record<string, unknown>;
      calls?: ScriptedToolCall[];
      /** `finish_reason`; by default `tool_calls` or `stop`. */
      finish?: string;
      /** Sent in one piece although a stream was asked for. */
      isWhole?: boolean;
      /** Estimated from the lengths by default. */
      usage?: ScriptedUsage;
      pace?: Pace;
    }
  | { kind: 'status'; status: number; message?: string; headers?: Record<string, string> }
  /** Anything that an address may answer: a page, an error in the form of a provider. */
  | { kind: 'body'; status: number; body: string; type: string; headers?: Record<string, string> }
  /** The beginning of a stream, then an error in it. */
  | { kind: 'streamError'; text: string; error: unknown }
  /** Accepts the request and never sends a byte. */
  | { kind: 'hang' }
  /** Sends the beginning of an answer, then destroys the connection. */
  | { kind: 'cut'; text: string; pace?: Pace }
  /** Sends the beginning of an answer, then nothing more. */
  | { kind: 'stall'; text: string };

/** A final answer in words. */
export function say(text: string, usage?: ScriptedUsage): ScriptedAnswer {
  return { kind: 'answer', text, usage };
}

/** One tool call, optionally with words or thoughts before it. */
export function call(
  name: string,
  args: Record<string, unknown> | string,
  { id, ...before }: { id?: string } & Partial<Extract<ScriptedAnswer, { kind: 'answer' }>> = {},
): ScriptedAnswer {
  return { ...before, kind: 'answer', calls: [{ name, arguments: args, id }] };
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

/** An answer that ends for another reason than that it is complete. */
export function endsWith(
  finish: string,
  answer: { text?: string; calls?: ScriptedToolCall[]; reasoning?: string } = {},
): ScriptedAnswer {
  return { kind: 'answer', finish, ...answer };
}

/** A refusal with the body of a provider, as JSON. */
export function refuses(status: number, body: unknown, headers: Record<string, string> = {}): ScriptedAnswer {
  return { kind: 'body', status, body: JSON.stringify(body), type: 'application/json', headers };
}

/** What an address answers that is no API. */
export function page(body: string, type = 'text/html', status = 200): ScriptedAnswer {
  return { kind: 'body', status, body, type };
}
