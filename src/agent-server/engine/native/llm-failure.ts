import { APICallError } from 'ai';
import { jsonText } from '../../../common/json-access.js';
import { describeFailure } from '../../log.js';
import { clipText } from '../../tools/tool.js';

/** The model's provider sent no byte for too long. */
export class SilentModelError extends Error {
  constructor(milliseconds: number) {
    super(`The model sent nothing for ${milliseconds / 1000} s.`);
    this.name = 'SilentModelError';
  }
}

/** A fetch that fails as soon as no byte arrives for that long, before the answer or in the middle of it. */
export function idleTimeoutFetch(
  milliseconds: number,
  redirect: 'follow' | 'error' = 'follow',
): typeof fetch {
  return async (input, init) => {
    const silence = new AbortController();
    const watch = new Watch(milliseconds, () => silence.abort(new SilentModelError(milliseconds)));
    const given = init?.signal;
    try {
      const response = await fetch(input, {
        ...init,
        redirect,
        signal: given ? AbortSignal.any([given, silence.signal]) : silence.signal,
      });
      watch.restart();
      const { body, status, statusText, headers } = response;
      if (body === null) {
        watch.stop();
        return response;
      }
      return new Response(body.pipeThrough(watched(watch)), { status, statusText, headers });
    } catch (error) {
      watch.stop();
      throw error;
    }
  };
}

class Watch {
  readonly #milliseconds: number;
  readonly #late: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(milliseconds: number, late: () => void) {
    this.#milliseconds = milliseconds;
    this.#late = late;
    this.restart();
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(this.#late, this.#milliseconds);
    // An answer that nobody reads any more keeps no process alive.
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }
}

function watched(watch: Watch): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      watch.restart();
      controller.enqueue(chunk);
    },
    flush() {
      watch.stop();
    },
  });
}

type LlmFailureCode =
  | 'LlmNotConfigured'
  | 'LlmAuthenticationFailed'
  | 'LlmRateLimited'
  | 'LlmRejected'
  | 'LlmContextFull'
  | 'LlmUnavailable'
  | 'LlmTimeout'
  | 'LlmEmptyAnswer';

/** Why the model did not answer, in words for the user. */
export class LlmFailure extends Error {
  readonly code: LlmFailureCode;
  /** null: the same call would fail again; else what the provider asks for, in milliseconds, 0 when nothing. */
  readonly retryAfterMs: number | null;

  constructor(code: LlmFailureCode, message: string, retryAfterMs: number | null, cause?: unknown) {
    super(message, { cause });
    this.name = 'LlmFailure';
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

const MAX_REASON = 1_000;
/** There is no common code for it; these are the words of the large providers and servers. */
const CONTEXT_FULL =
  /context[ _-]?(length|window|size)|prompt is too long|too many (input )?tokens|maximum .{0,40}tokens|input is too long/i;

/** Reads what an attempt threw. */
export function toLlmFailure(error: unknown, now: number): LlmFailure {
  if (error instanceof LlmFailure) {
    return error;
  }
  const silence = causes(error).find((cause) => cause instanceof SilentModelError);
  if (silence !== undefined) {
    return new LlmFailure('LlmTimeout', silence.message, null, error);
  }
  const call = causes(error).find((cause) => APICallError.isInstance(cause));
  const status = call?.statusCode ?? 0;
  // 200 stands there too, for an answer that broke off.
  return call === undefined || status < 400 ? unreachable(error) : refused(call, status, now);
}

function refused(call: APICallError, status: number, now: number): LlmFailure {
  const reason = `The model's provider answered ${status}: ${providerReason(call)}`;
  if (status === 401 || status === 403) {
    return new LlmFailure('LlmAuthenticationFailed', reason, null, call);
  }
  const retryAfter = readRetryAfter(call.responseHeaders?.['retry-after'], now);
  if (status === 429) {
    return new LlmFailure('LlmRateLimited', reason, retryAfter, call);
  }
  if (status >= 500 || status === 408) {
    return new LlmFailure('LlmUnavailable', reason, retryAfter, call);
  }
  const code = status === 413 || CONTEXT_FULL.test(reason) ? 'LlmContextFull' : 'LlmRejected';
  return new LlmFailure(code, reason, null, call);
}

/** No answer, or one that ended in the middle. */
function unreachable(error: unknown): LlmFailure {
  const reasons = new Set(causes(error).map((cause) => describeFailure(cause).message));
  const text = clipText([...reasons].join(': '), MAX_REASON);
  return new LlmFailure(
    'LlmUnavailable',
    `The model could not be reached, or its answer broke off: ${text}`,
    0,
    error,
  );
}

/** What the provider says about it: `error.message` of its JSON, else the body's beginning. */
function providerReason(call: APICallError): string {
  const body = call.responseBody ?? '';
  return clipText(errorMessage(body) ?? (body.trim() === '' ? call.message : body.trim()), MAX_REASON);
}

function errorMessage(body: string): string | null {
  try {
    const parsed: unknown = JSON.parse(body);
    return jsonText(parsed, 'error', 'message') ?? jsonText(parsed, 'message') ?? jsonText(parsed, 'error');
  } catch {
    return null;
  }
}

/** RFC 9110, 10.2.3: seconds or a date; 0 when there is none. */
function readRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) {
    return 0;
  }
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) {
    return Number(header) * 1000;
  }
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}

/** What was thrown and what caused it. */
function causes(thrown: unknown): unknown[] {
  const found: unknown[] = [];
  for (let next = thrown; next !== undefined && next !== null && found.length < 10; next = causeOf(next)) {
    found.push(next);
  }
  return found;
}

function causeOf(thrown: unknown): unknown {
  return typeof thrown === 'object' && thrown !== null && 'cause' in thrown ? thrown.cause : undefined;
}
