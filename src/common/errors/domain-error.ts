/** Machine codes of problem documents; the enum of `code` in OpenAPI. */
export const ERROR_CODES = [
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'malformed_request',
  'misdirected_request',
  'conflict',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'no_git_provider',
  'invalid_git_token',
  'git_providers_failed',
  'conversation_limit',
  'sandbox_limit',
  'stored_sandbox_limit',
  'sandbox_not_running',
  'upstream_error',
  'unavailable',
  'overloaded',
  'storage_full',
  'internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** The kind of a failure. Only the HTTP filter knows its status. */
export type ErrorKind =
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'too_large'
  | 'misdirected'
  | 'rate_limited'
  | 'bad_gateway'
  | 'gateway_timeout'
  | 'unavailable'
  | 'bad_request';

interface DomainErrorOptions {
  cause?: unknown;
  /** Seconds after which a retry makes sense; becomes `Retry-After`. */
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

/** One broken rule: where, what would be right, and the machine type of the failure. */
export interface InputProblem {
  /** Path to the value, strings only; the first element is `body`, `query`, `path` or `header`. */
  loc: string[];
  /** One sentence that says what would be right. Never contains the rejected value. */
  msg: string;
  /** Machine type, for example `missing`, `int_parsing`, `value_error`. */
  type: string;
}

/** Input that breaks one or more rules; becomes 422 `{detail:[{loc,msg,type}]}`. */
export class InvalidInputError extends Error {
  constructor(readonly problems: readonly InputProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidInputError';
  }
}
