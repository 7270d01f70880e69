import { isIPv4 } from 'node:net';
import { APICallError } from 'ai';
import { connectionProblem, errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { clipText } from '../../clipped-text.js';
import {
  isContextFull,
  isFiltered,
  isBrokenCall,
  isFinal,
  isNoAddress,
  isOutOfMoney,
  isWithoutTools,
  namedPause,
  readRefusal,
  type Refusal,
} from './refusal-words.js';

type LlmFailureCode =
  | 'LlmNotConfigured'
  | 'LlmAuthenticationFailed'
  | 'LlmQuotaExceeded'
  | 'LlmRateLimited'
  | 'LlmRejected'
  | 'LlmContextFull'
  | 'LlmContentFiltered'
  | 'LlmUnavailable'
  | 'LlmUnexpectedAnswer'
  | 'LlmTimeout'
  | 'LlmEmptyAnswer'
  | 'ModelRepeats';

export class LlmFailure extends Error {
  override readonly name = 'LlmFailure';
  /** Whether the provider refused the request for a reason that a shorter history may remove. */
  readonly mayBeHistory: boolean;
  /** Whether images may be the reason: the refusal has no known one, or is about the size of the request. */
  readonly mayBeImages: boolean;

  /** @param retryAfterMs that the provider asks to wait; 0 if it does not say, null if the same call would fail again */
  constructor(
    readonly code: LlmFailureCode,
    message: string,
    readonly retryAfterMs: number | null,
    {
      cause,
      mayBeHistory = false,
      status,
    }: { cause?: unknown; mayBeHistory?: boolean; status?: number } = {},
  ) {
    super(message, { cause });
    this.mayBeHistory = mayBeHistory;
    this.mayBeImages = code === 'LlmRejected' || status === 413;
  }
}

export class UnresponsiveModelError extends Error {
  constructor(milliseconds: number) {
    super(`The model sent nothing for ${milliseconds / 1000} s.`);
    this.name = 'UnresponsiveModelError';
  }
}

const MAX_REASON = 1_000;
/** Errors of `connect` when a policy blocks the destination, or no route leads there (connect(2)). */
const CLOSED_CODES = ['EPERM', 'EHOSTUNREACH', 'ENETUNREACH'];
/** Helps users who gave the address of the server instead of its API. */
export const ADDRESS_HINT =
  'Check llm_base_url: it has to be the address of the API, which ends with /v1 at most servers.';
const TOOLS_HINT =
  'If the model takes no calls of tools, set native_tool_calling to false in its settings: it then writes them as text.';
const CONTEXT_HINT =
  'Its context is too small, so it left out most of the prompt: give it a larger one at its server (num_ctx, OLLAMA_CONTEXT_LENGTH).';

export function toLlmFailure(error: unknown, now: number): LlmFailure {
  const chain = causes(error);
  const own = chain.find((cause) => cause instanceof LlmFailure);
  if (own !== undefined) {
    return own;
  }
  const timeout = chain.find((cause) => cause instanceof UnresponsiveModelError);
  if (timeout !== undefined) {
    return new LlmFailure('LlmTimeout', timeout.message, null, { cause: error });
  }
  const call = chain.find((cause) => APICallError.isInstance(cause));
  const status = call?.statusCode ?? 0;
  if (call !== undefined && status >= 400) {
    const answer = { status, body: call.responseBody ?? '', headers: call.responseHeaders ?? {} };
    return errorResponse({ ...answer, url: call.url }, now, call);
  }
  const body = streamError(chain);
  // A response that broke off has status 200 here.
  return body === null
    ? connectionFailure(error)
    : errorResponse({ status: body.status, body: body.text, headers: {} }, now, error);
}

interface ErrorAnswer {
  status: number;
  body: string;
  headers: Record<string, string>;
  url?: string;
}

function errorResponse(
  { status, body, headers, url = '' }: ErrorAnswer,
  now: number,
  cause: unknown,
): LlmFailure {
  const refusal = readRefusal(body);
  const said = withoutStatus(refusal.reason || jsonText(cause, 'message') || '', status);
  const text = clipText(said, MAX_REASON);
  const hint = [404, 405].includes(status)
    ? addressHint(url, isNoAddress(status, refusal))
    : isWithoutTools(refusal)
      ? ` ${TOOLS_HINT}`
      : /no user query found/i.test(said)
        ? ` ${CONTEXT_HINT}`
        : '';
  const reason = `The model's provider answered ${status}: ${text}${hint}`;
  const code = failureCode(status, refusal);
  const pause = namedPause(headers, body, now);
  const isPassing = ['LlmEmptyAnswer', 'LlmRateLimited', 'LlmUnavailable'].includes(code);
  if (isPassing || (code === 'LlmQuotaExceeded' && pause > 0)) {
    return new LlmFailure(code, reason, pause, { cause });
  }
  const isRefused = [400, 413, 422].includes(status) && code !== 'LlmContentFiltered' && !isFinal(refusal);
  const mayBeHistory = code === 'LlmContextFull' || isRefused;
  return new LlmFailure(code, reason, null, { cause, mayBeHistory, status });
}

/** An address that does not know the request may speak the other form, or be none of an API. */
function addressHint(url: string, lacksAddress: boolean): string {
  const path = URL.parse(url)?.pathname ?? '';
  const isUnversioned = /^\/(chat\/completions|responses)$/.test(path);
  const isRequest = /\/(chat\/completions|responses|messages)$/.test(path);
  const other = path.endsWith('/messages')
    ? "It was asked in Anthropic's form: if it speaks OpenAI's, set api to openai in the settings of the model."
    : "It was asked in OpenAI's form: if it speaks Anthropic's, set api to anthropic in the settings of the model.";
  const hints = [...(isUnversioned ? [ADDRESS_HINT] : []), ...(lacksAddress && isRequest ? [other] : [])];
  return hints.map((hint) => ` ${hint}`).join('');
}

function failureCode(status: number, refusal: Refusal): LlmFailureCode {
  const isDenied = status === 401 || status === 403;
  const signs: [LlmFailureCode, boolean][] = [
    ['LlmQuotaExceeded', status === 402 || isOutOfMoney(refusal)],
    ['LlmAuthenticationFailed', isDenied && !isFiltered(refusal)],
    ['LlmEmptyAnswer', !isDenied && isBrokenCall(refusal)],
    ['LlmContextFull', !isDenied && isContextFull(status, refusal)],
    ['LlmContentFiltered', isFiltered(refusal)],
    ['LlmRateLimited', status === 429],
    ['LlmUnavailable', status >= 500 || status === 408],
  ];
  return signs.find(([, holds]) => holds)?.[0] ?? 'LlmRejected';
}

/** Words of codes in an answer that began with 200, and the status that says the same. */
const CODE_STATUS: readonly [RegExp, number][] = [
  [/rate.?limit|too.?many|exhausted/, 429],
  [/auth|api.?key|permission/, 401],
  [/insufficient|billing|payment/, 402],
  [/context|token|length|invalid|bad.?request|unsupported|policy|filter/, 400],
];

/** An error that arrived in the stream of an answer, or null. */
function streamError(chain: readonly unknown[]): { status: number; text: string } | null {
  for (const found of chain) {
    // The SDK passes the object on, or reports that it does not know its form.
    const said =
      jsonAt(found, 'value', 'error') ??
      jsonAt(found, 'data', 'response', 'error') ??
      jsonAt(found, 'data', 'error') ??
      jsonAt(found, 'data') ??
      (found instanceof Error ? undefined : found);
    const code = jsonNumber(said, 'code') ?? jsonNumber(said, 'status') ?? 0;
    const text = typeof said === 'string' ? said : jsonText(said, 'message');
    // Gateways in Python quote the exception of OpenAI's client.
    const quoted = /\berror code: ([45]\d\d)\b/i.exec(text ?? '')?.[1];
    const words = [jsonText(said, 'code'), jsonText(said, 'type'), quoted].join(' ').toLowerCase();
    if (text !== null) {
      const byCode = code >= 400 && code < 600 ? code : Number(/\b[45]\d\d\b/.exec(words)?.[0] ?? 0);
      const status = byCode || CODE_STATUS.find(([pattern]) => pattern.test(words))?.[1] || 502;
      return { status, text: JSON.stringify({ error: said }) };
    }
  }
  return null;
}

function connectionFailure(error: unknown): LlmFailure {
  // The SDK also throws plain objects with a message.
  const reasons = causes(error).map((cause) => jsonText(cause, 'message') ?? errorMessage(cause));
  const text = clipText(distinct(reasons).join(': '), MAX_REASON);
  const problem = connectionProblem(error);
  const closed = closedDestination(error);
  const opening =
    closed === null
      ? ''
      : ` The sandbox may have a network of its own, which leads to public addresses only: an operator can open this one with SANDBOX_NETWORK_ALLOW=${closed}.`;
  const hint = problem === null ? opening : ` (${problem})`;
  const message = `The model could not be reached, or its answer broke off: ${text}${hint}`;
  return new LlmFailure('LlmUnavailable', message, 0, { cause: error });
}

function distinct(sentences: readonly string[]): string[] {
  return sentences.filter(
    (sentence, index) =>
      !sentences.some(
        (other, place) => other.includes(sentence) && (other !== sentence ? place !== index : place < index),
      ),
  );
}

/** What a provider says, without a beginning such as `Error: 401` that our own sentence has already. */
function withoutStatus(text: string, status: number): string {
  const rest = text.replace(
    new RegExp(`^(?:error:\\s*)*(?:error code:?\\s*)?(?:${status}\\b[\\s:,.-]*)?`, 'i'),
    '',
  );
  return rest === '' ? text : rest;
}

/** The destination that the network does not let us connect to; null when that is not the reason. */
function closedDestination(error: unknown): string | null {
  const tries = causes(error).flatMap((cause) => [
    cause,
    ...(cause instanceof AggregateError ? cause.errors : []),
  ]);
  for (const attempt of tries) {
    const address = jsonText(attempt, 'address') ?? '';
    const code = jsonText(attempt, 'code') ?? '';
    const isClosed = CLOSED_CODES.includes(code) || (code === 'ECONNREFUSED' && address.startsWith('127.'));
    if (isIPv4(address) && isClosed) {
      return `${address}:${jsonNumber(attempt, 'port')}`;
    }
  }
  return null;
}

function causes(thrown: unknown): unknown[] {
  const found: unknown[] = [];
  for (
    let next = thrown;
    next !== undefined && next !== null && found.length < 10;
    next = jsonAt(next, 'cause')
  ) {
    found.push(next);
  }
  return found;
}
