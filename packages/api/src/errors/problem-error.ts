/** What kind of failure an error is, by the status that HTTP has for it. */
export const STATUS_OF_KIND = {
  bad_request: 400,
  unauthorized: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  not_offered: 501,
  bad_gateway: 502,
  unavailable: 503,
  gateway_timeout: 504,
  storage_full: 507,
} as const;

export type ErrorKind = keyof typeof STATUS_OF_KIND;

/** The codes that this package itself answers with; a service has them among its own. */
export type EdgeCode =
  | 'internal'
  | 'invalid_input'
  | 'malformed_request'
  | 'method_not_allowed'
  | 'not_found'
  | 'payload_too_large'
  | 'unsupported_media_type';

export interface ProblemErrorOptions {
  cause?: unknown;
  /** Becomes `Retry-After`. */
  retryAfterSeconds?: number;
  /** Further members of the problem document (RFC 9457 section 3.2). Never a secret. */
  extensions?: Record<string, unknown>;
}

/** A machine code and a sentence that is safe to show; only `ProblemFilter` turns it into HTTP. */
export class ProblemError<Code extends string = string> extends Error {
  readonly retryAfterSeconds: number | undefined;
  readonly extensions: Record<string, unknown>;

  constructor(
    readonly code: Code,
    readonly kind: ErrorKind,
    message: string,
    { cause, retryAfterSeconds, extensions = {} }: ProblemErrorOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProblemError';
    this.retryAfterSeconds = retryAfterSeconds;
    this.extensions = extensions;
  }
}

export interface InputProblem {
  /** The first element is `body`, `query`, `path` or `header`. */
  loc: string[];
  /** Says what would be right, and never contains the rejected value. */
  msg: string;
  type: string;
}

export class InvalidInputError extends Error {
  readonly problems: readonly InputProblem[];

  constructor(problems: InputProblem | readonly InputProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidInputError';
    this.problems = [problems].flat();
  }

  /** All problems in one line, for readers who get no document. */
  get sentence(): string {
    return this.problems.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join(' ');
  }
}

/** @throws InvalidInputError when there are problems */
export function requireNone(problems: readonly InputProblem[]): void {
  if (problems.length > 0) {
    throw new InvalidInputError(problems);
  }
}
