import type { ProviderErrorCode } from './git-provider.types.js';

/** A provider that gave no usable answer. The message is fixed text: never an upstream body, address or token. */
export class GitProviderError extends Error {
  readonly retryAfterSeconds: number | null;

  constructor(
    readonly code: ProviderErrorCode,
    options: { cause?: unknown; retryAfterSeconds?: number | null } = {},
  ) {
    super(`git provider failed: ${code}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GitProviderError';
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}
