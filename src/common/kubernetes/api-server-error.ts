import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const MAX_RETRY_AFTER_MS = 30_000;
const TEMPORARY_STATUSES = new Set([408, 429, 500, 502, 503, 504]);
/** An API server reads its roles within a few seconds of its start. */
const SETTLING_MS = 30_000;

/** A null status means that there was no usable response. */
export class ApiServerError extends Error {
  constructor(
    message: string,
    readonly status: number | null,
    /** For example `NotFound`, `AlreadyExists`. */
    readonly reason: string | null,
    readonly retryAfterMs: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ApiServerError';
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    // Another client changed the object; an object that already exists has another reason.
    const isConflict = this.status === 409 && this.reason === 'Conflict';
    return this.status === null || TEMPORARY_STATUSES.has(this.status) || isConflict;
  }
}

/** Remembers outages: an API server that has just started answers 403 until it has read the cluster's roles. */
export class ApiServerOutages {
  #lastAt = -Infinity;

  get lastAt(): number {
    return this.#lastAt;
  }

  /** @param now milliseconds of a clock that never jumps */
  judge(error: unknown, now: number = performance.now()): ApiServerError {
    const failure = asApiServerError(error);
    const { status, message, reason, retryAfterMs } = failure;
    if (status === 403 && now < this.#lastAt + SETTLING_MS) {
      const text = `it has just started, and does not know its roles yet: ${message}`;
      return new ApiServerError(text, null, reason, retryAfterMs, { cause: failure });
    }
    if (status === null || status >= 500) {
      this.#lastAt = now;
    }
    return failure;
  }
}

export function refusal(status: number, headers: IncomingHttpHeaders, body: string): ApiServerError {
  const parsed = parseJson(body);
  const seconds = Number(headers['retry-after'] ?? jsonNumber(parsed, 'details', 'retryAfterSeconds') ?? NaN);
  return new ApiServerError(
    jsonText(parsed, 'message') ?? (textHead(body.trim(), 500) || `it answered ${status}`),
    status,
    jsonText(parsed, 'reason'),
    Number.isFinite(seconds) ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : null,
  );
}

/** Differs between callers that failed together. */
export function pauseBefore(attempt: number, failure: ApiServerError | null): number {
  const grown = Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS);
  return failure?.retryAfterMs ?? randomInt(Math.floor(grown / 2), grown + 1);
}

function asApiServerError(error: unknown): ApiServerError {
  return error instanceof ApiServerError
    ? error
    : new ApiServerError(errorMessage(error), null, null, null, { cause: error });
}
