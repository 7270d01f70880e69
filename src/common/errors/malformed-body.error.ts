/** What is wrong with a body before it is even JSON. */
export type MalformedBodyReason = 'media_type' | 'encoding' | 'syntax' | 'too_large' | 'aborted';

/** By `type` of http-errors as body-parser raises them. */
const REASONS: Record<string, MalformedBodyReason> = {
  'entity.too.large': 'too_large',
  'encoding.unsupported': 'media_type',
  'charset.unsupported': 'media_type',
  'entity.parse.failed': 'syntax',
  'request.aborted': 'aborted',
  'request.size.invalid': 'aborted',
};

/** A request body that could not be read as JSON. */
export class MalformedBodyError extends Error {
  /** What the body may have had, where it was too large. */
  readonly limitBytes: number | null;

  constructor(
    readonly reason: MalformedBodyReason,
    { limitBytes = null, ...options }: { cause?: unknown; limitBytes?: number | null } = {},
  ) {
    super(`The request body could not be read: ${reason}`, options);
    this.limitBytes = limitBytes;
    this.name = 'MalformedBodyError';
  }

  /** Classifies what body-parser threw; anything it blames on the client that has no name here is a syntax error. */
  static from(error: unknown): unknown {
    if (error instanceof MalformedBodyError) {
      return error;
    }
    const { type, status, limit } = error as { type?: string; status?: number; limit?: number };
    const reason = REASONS[type ?? ''] ?? (status !== undefined && status < 500 ? 'syntax' : undefined);
    return reason === undefined
      ? error
      : new MalformedBodyError(reason, { cause: error, limitBytes: limit ?? null });
  }
}
