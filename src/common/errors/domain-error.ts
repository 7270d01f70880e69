import {
  type EdgeCode,
  type ErrorKind,
  ProblemError,
  type ProblemErrorOptions,
} from '@slipway/api/errors/problem-error.js';

export const NO_KEY =
  'Unauthorized: send your API key in the header X-Session-API-Key (or as Authorization: Bearer). If you did, it is misspelt, revoked, expired or not valid yet. The first start writes one to the file api-key of the data folder, .data/api-key by default, and prints where; npm run keys -- create --user EMAIL makes others.';

/** Codes, and what kind of failure each is unless its error says otherwise. */
const KINDS = {
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  insufficient_scope: 'forbidden',
  outside_repositories: 'forbidden',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  malformed_request: 'bad_request',
  invalid_input: 'unprocessable',
  misdirected_request: 'misdirected',
  conflict: 'conflict',
  payload_too_large: 'too_large',
  unsupported_media_type: 'unsupported_media_type',
  rate_limited: 'rate_limited',
  no_git_provider: 'unauthorized',
  invalid_git_token: 'unauthorized',
  git_providers_failed: 'bad_gateway',
  conversation_limit: 'conflict',
  budget_exceeded: 'payment_required',
  sandbox_limit: 'rate_limited',
  stored_sandbox_limit: 'conflict',
  sandbox_not_running: 'not_found',
  upstream_error: 'bad_gateway',
  unavailable: 'unavailable',
  overloaded: 'unavailable',
  storage_full: 'storage_full',
  no_role: 'forbidden',
  groups_overage: 'forbidden',
  address_taken: 'conflict',
  invalid_signature: 'unauthorized',
  not_offered: 'not_offered',
  access_denied: 'bad_request',
  authorization_pending: 'bad_request',
  expired_token: 'bad_request',
  invalid_grant: 'bad_request',
  invalid_request: 'bad_request',
  slow_down: 'bad_request',
  unsupported_grant_type: 'bad_request',
  internal: 'internal',
} as const satisfies Record<EdgeCode, ErrorKind> & Record<string, ErrorKind>;

export type ErrorCode = keyof typeof KINDS;
export const ERROR_CODES = Object.keys(KINDS) as ErrorCode[];

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(KINDS, code);
}

interface DomainErrorOptions extends ProblemErrorOptions {
  /** Another one than that of the code. */
  kind?: ErrorKind;
}

export class DomainError extends ProblemError<ErrorCode> {
  constructor(code: ErrorCode, message: string, { kind = KINDS[code], ...options }: DomainErrorOptions = {}) {
    super(code, kind, message, options);
    this.name = 'DomainError';
  }
}

/** Returns the error for an id that is unknown or another user's. */
export function unknownId(noun: string): DomainError {
  return new DomainError('not_found', `There is no ${noun} with this id.`);
}

/** @throws DomainError not_found for null */
export function found<T>(thing: T | null, noun: string): T {
  if (thing === null) {
    throw unknownId(noun);
  }
  return thing;
}

/** Returns the error for exceeding the number that a user may have. */
export function tooMany(noun: string, most: number): DomainError {
  return new DomainError('conflict', `A user may have ${most} ${noun}s; delete one first.`);
}
