/** A queue of jobs that survive the process that sent them. */
export interface JobQueue {
  /** Letters, digits, `-`, `_`, `.`. */
  name: string;
  /** Where a job goes whose attempts all failed; a queue without one keeps it as failed. */
  deadLetter: string | null;
  /** Further attempts after the first one. */
  retryLimit: number;
  /** Seconds before the second attempt; doubled for each further one. */
  retryDelaySeconds: number;
  /** Jobs of this queue that one process works on at the same time. */
  concurrency: number;
  /** How often this process looks for jobs that others sent, milliseconds. */
  pollMs: number;
}

/** One attempt at a job. */
export interface JobAttempt {
  /** As it was sent. */
  data: unknown;
  /**
   * Aborts when the process stops, and when the job was given to somebody else: whoever works on it ends as soon as it
   * can, and the job begins anew elsewhere.
   */
  signal: AbortSignal;
  /** In a queue of dead letters: what the last attempt failed with. */
  failure: string | null;
}

/**
 * Does a job. When it throws, the job is tried again later.
 */
export type JobHandler = (attempt: JobAttempt) => Promise<void>;
