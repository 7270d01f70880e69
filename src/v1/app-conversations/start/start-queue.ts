import { createHash } from 'node:crypto';
import type { JobQueue } from '../../../database/jobs/job-queue.js';

/** Much of a start is waiting: for a place, for a sandbox, for a clone. */
const CONCURRENCY = 100;
/** Starts are announced; this is for announcements that were missed. */
const POLL_MS = 2_000;
const DEAD_POLL_MS = 5_000;
const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/** Starts that were given up. */
export const DEAD_STARTS: JobQueue = {
  name: 'conversation-start-dead',
  deadLetter: null,
  retryLimit: 10,
  retryDelaySeconds: 1,
  concurrency: 10,
  pollMs: DEAD_POLL_MS,
};

/** The starts in sandboxes of one host. */
export function startQueue(hostId: string): JobQueue {
  const name = NAME.test(hostId) ? hostId : createHash('sha256').update(hostId).digest('hex');
  return {
    name: `conversation-start-${name}`,
    deadLetter: DEAD_STARTS.name,
    retryLimit: 3,
    retryDelaySeconds: 1,
    concurrency: CONCURRENCY,
    pollMs: POLL_MS,
  };
}
