/** Machine codes of problem documents; the enum of `code` in OpenAPI. */
export const ERROR_CODES = [
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'no_git_provider',
  'invalid_git_token',
  'git_providers_failed',
  'sandbox_limit',
  'sandbox_not_running',
  'upstream_error',
  'unavailable',
  'internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];
