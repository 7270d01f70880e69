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
  constructor(
    readonly reason: UpstreamReason,
    readonly origin: string,
    options?: { cause?: unknown },
  ) {
    super(`Call to ${origin} failed: ${reason}`, options);
    this.name = 'UpstreamError';
  }
}
