/** Why no usable answer came from another server. */
export type UpstreamReason =
  /** The deadline passed or the caller's signal aborted. */
  | 'timeout'
  /** DNS, TCP, TLS failure or a connection that broke. */
  | 'network'
  /** The answer was larger than the cap. */
  | 'too_large'
  /** The address may not be called (not allowlisted, not public, wrong scheme). */
  | 'refused'
  /** A redirect to another origin, or too many of them. */
  | 'redirect'
  /** A body that is not what its type says (truncated JSON, HTML instead of JSON). */
  | 'malformed';

/** A call to another server that produced no usable answer. Holds the origin only: paths and queries can carry secrets. */
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
