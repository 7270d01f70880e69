import { isIPv4 } from 'node:net';
import { APICallError } from 'ai';
import { errorMessage } from '../../../common/errors/error-message.js';
import { jsonNumber, jsonText, parseJson } from '../../../common/json-access.js';
import { clipText } from '../../clipped-text.js';
import { UnresponsiveModelError } from './idle-timeout-fetch.js';

type LlmFailureCode =
  | 'LlmNotConfigured'
  | 'LlmAuthenticationFailed'
  | 'LlmRateLimited'
  | 'LlmRejected'
  | 'LlmContextFull'
  | 'LlmUnavailable'
  | 'LlmTimeout'
  | 'LlmEmptyAnswer';

/** Why a call of the model failed, in words for the user. */
export class LlmFailure extends Error {
  readonly code: LlmFailureCode;
  /** Milliseconds that the provider asks to wait, 0 if it does not say; null: the same call would fail again. */
  readonly retryAfterMs: number | null;

  constructor(code: LlmFailureCode, message: string, retryAfterMs: number | null, cause?: unknown) {
    super(message, { cause });
    this.name = 'LlmFailure';
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

const MAX_REASON = 1_000;
/** Errors of `connect` when a policy blocks the destination, or no route leads there (connect(2)). */
const CLOSED_CODES = ['EPERM', 'EHOSTUNREACH', 'ENETUNREACH'];
/** Providers share no error code for this; these are the words of the large ones. */
const CONTEXT_FULL =
  /context[ _-]?(length|window|size)|prompt is too long|too many (input )?tokens|maximum .{0,40}tokens|input is too long/i;

/** Classifies the error of a call. */
export function toLlmFailure(error: unknown, now: number): LlmFailure {
  if (error instanceof LlmFailure) {
    return error;
  }
  const timeout = causes(error).find((cause) => cause instanceof UnresponsiveModelError);
  if (timeout !== undefined) {
    return new LlmFailure('LlmTimeout', timeout.message, null, error);
  }
  const call = causes(error).find((cause) => APICallError.isInstance(cause));
  const status = call?.statusCode ?? 0;
  // A response that broke off has status 200 here.
  return call === undefined || status < 400 ? connectionFailure(error) : errorResponse(call, status, now);
}

function errorResponse(call: APICallError, status: number, now: number): LlmFailure {
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

/** No response, or one that ended in the middle. */
function connectionFailure(error: unknown): LlmFailure {
  // The SDK also throws plain objects with a message.
  const reasons = new Set(causes(error).map((cause) => jsonText(cause, 'message') ?? errorMessage(cause)));
  const text = clipText([...reasons].join(': '), MAX_REASON);
  const closed = closedDestination(error);
  const hint =
    closed === null
      ? ''
      : ` The sandbox may have a network of its own, which leads to public addresses only: an operator can open this one with SANDBOX_NETWORK_ALLOW=${closed}.`;
  return new LlmFailure(
    'LlmUnavailable',
    `The model could not be reached, or its answer broke off: ${text}${hint}`,
    0,
    error,
  );
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

/** The provider's reason: `error.message` of its JSON, else the beginning of the body. */
function providerReason(call: APICallError): string {
  const body = call.responseBody ?? '';
  return clipText(bodyMessage(body) ?? (body.trim() === '' ? call.message : body.trim()), MAX_REASON);
}

function bodyMessage(body: string): string | null {
  const parsed = parseJson(body);
  return jsonText(parsed, 'error', 'message') ?? jsonText(parsed, 'message') ?? jsonText(parsed, 'error');
}

/** Milliseconds of a `Retry-After` header (RFC 9110, 10.2.3: seconds or a date); 0 if there is none. */
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

/** The error and its chain of causes. */
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
