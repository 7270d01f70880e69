import type { ErrorCode } from './error-code.js';

/** What kind of failure this is; the HTTP filter alone knows which status each one has. */
export type ErrorKind =
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'rate_limited'
  | 'bad_gateway'
  | 'gateway_timeout'
  | 'unavailable'
  | 'bad_request';

export interface DomainErrorOptions {
  cause?: unknown;
  /** Seconds after which trying again makes sense; becomes `Retry-After`. */
  retryAfterSeconds?: number;
  /** Further members of the problem document (RFC 9457 section 3.2). Never a secret. */
  extensions?: Record<string, unknown>;
}

/**
 * A failure that a caller can understand: a stable machine code, and one sentence that is safe to show.
 * Services throw these; `ProblemFilter` is the only place that turns them into HTTP.
 */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly retryAfterSeconds: number | undefined;
  readonly extensions: Record<string, unknown>;

  constructor(kind: ErrorKind, code: ErrorCode, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DomainError';
    this.kind = kind;
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.extensions = options.extensions ?? {};
  }
}
