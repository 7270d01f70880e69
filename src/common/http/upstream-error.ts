/** Why another server gave no usable response. */
export type UpstreamReason =
  /** The deadline passed or the caller's signal aborted. */
  | 'timeout'
  /** DNS, TCP or TLS failed, or the connection broke. */
  | 'network'
  /** The response exceeds a bound: its bytes, or the values, elements and levels of its JSON. */
  | 'too_large'
  /** The address may not be called (not allowlisted, not public, wrong scheme). */
  | 'refused'
  /** A redirect to another origin, or too many of them. */
  | 'redirect'
  /** As many requests to the origin as one user may have are under way. */
  | 'share'
  /** The body is not what its type says (truncated JSON, HTML instead of JSON). */
  | 'malformed';

/** A call to another server that gave no usable response. Holds only the origin: paths and queries can carry secrets. */
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
