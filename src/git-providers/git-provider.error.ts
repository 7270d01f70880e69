import type { ProviderErrorCode } from './git-provider.types.js';

export interface GitProviderErrorOptions {
  cause?: unknown;
  retryAfterSeconds?: number | null;
  reason?: string | null;
}

/** A provider that gave no usable answer. The message is fixed text: never an upstream body, address or token. */
export class GitProviderError extends Error {
  readonly retryAfterSeconds: number | null;
  /** Why a change was refused, fit to show: what the provider said, clipped and without the token. Null for all else. */
  readonly reason: string | null;

  constructor(
    readonly code: ProviderErrorCode,
    options: GitProviderErrorOptions = {},
  ) {
    super(`git provider failed: ${code}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GitProviderError';
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.reason = options.reason ?? null;
  }
}
