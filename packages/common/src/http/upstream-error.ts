export type UpstreamReason =
  /** The deadline passed or the caller's signal aborted. */
  | 'timeout'
  | 'network'
  /** Exceeds bytes, or the values, elements and levels of JSON. */
  | 'too_large'
  | 'refused'
  | 'redirect'
  /** The user already has as many requests to the origin as allowed. */
  | 'share'
  /** Not what its type says (truncated JSON, HTML instead of JSON). */
  | 'malformed';

/** Holds only the origin: paths and queries can carry secrets. */
export class UpstreamError extends Error {
  /** What is in the way of a connection and how to mend that: a proxy, a certificate. */
  readonly advice: string | null;

  constructor(
    readonly reason: UpstreamReason,
    readonly origin: string,
    { advice = null, ...options }: { cause?: unknown; advice?: string | null } = {},
  ) {
    super(`Call to ${origin} failed: ${reason}`, options);
    this.advice = advice;
    this.name = 'UpstreamError';
  }
}
