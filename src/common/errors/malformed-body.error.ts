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
  constructor(
    readonly reason: MalformedBodyReason,
    options?: { cause?: unknown },
  ) {
    super(`The request body could not be read: ${reason}`, options);
    this.name = 'MalformedBodyError';
  }

  /** Classifies what body-parser threw; anything it blames on the client that has no name here is a syntax error. */
  static from(error: unknown): unknown {
    if (error instanceof MalformedBodyError) {
      return error;
    }
    const { type, status } = error as { type?: string; status?: number };
    const reason = REASONS[type ?? ''] ?? (status !== undefined && status < 500 ? 'syntax' : undefined);
    return reason === undefined ? error : new MalformedBodyError(reason, { cause: error });
  }
}
