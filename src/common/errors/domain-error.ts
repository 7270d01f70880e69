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
  'budget_exceeded',
  'sandbox_limit',
  'stored_sandbox_limit',
  'sandbox_not_running',
  'upstream_error',
  'unavailable',
  'overloaded',
  'storage_full',
  'invalid_signature',
  'not_offered',
  'access_denied',
  'authorization_pending',
  'expired_token',
  'invalid_grant',
  'invalid_request',
  'slow_down',
  'unsupported_grant_type',
  'internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export type ErrorKind =
  | 'unauthorized'
  | 'payment_required'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'too_large'
  | 'misdirected'
  | 'rate_limited'
  | 'bad_gateway'
  | 'gateway_timeout'
  | 'storage_full'
  | 'unavailable'
  | 'not_offered'
  | 'bad_request';

interface DomainErrorOptions {
  cause?: unknown;
  /** Becomes `Retry-After`. */
  retryAfterSeconds?: number;
  /** Further members of the problem document (RFC 9457 section 3.2). Never a secret. */
  extensions?: Record<string, unknown>;
}

/** A machine code and a sentence that is safe to show; only `ProblemFilter` turns it into HTTP. */
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

/** For an id that is unknown, or whose thing is another user's. */
export function unknownId(noun: string): DomainError {
  return new DomainError('not_found', 'not_found', `There is no ${noun} with this id.`);
}

/** @throws DomainError not_found for null */
export function found<T>(thing: T | null, noun: string): T {
  if (thing === null) {
    throw unknownId(noun);
  }
  return thing;
}

/** For one that is made beyond those that a user may have. */
export function tooMany(noun: string, most: number): DomainError {
  return new DomainError('conflict', 'conflict', `A user may have ${most} ${noun}s; delete one first.`);
}

export interface InputProblem {
  /** The first element is `body`, `query`, `path` or `header`. */
  loc: string[];
  /** Says what would be right, and never contains the rejected value. */
  msg: string;
  type: string;
}

export class InvalidInputError extends Error {
  constructor(readonly problems: readonly InputProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidInputError';
  }

  /** All problems in one line, for readers who get no document. */
  get sentence(): string {
    return this.problems.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join(' ');
  }
}
