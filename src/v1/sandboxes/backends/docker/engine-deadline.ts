/** A stop takes its grace time, and nothing else that is asked of an engine nearly as long. Pulls have their own limits. */
const DEADLINE_MS = 60_000;

/**
 * What the engine answers, if it does in time: the client library waits for ever for an engine that hangs, or that dies
 * in the middle of an answer, and with it would whoever works on the sandbox.
 *
 * @throws Error in words for people when the time is over
 */
export async function inTime<T>(answer: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`the Docker engine did not answer within ${deadlineMs / 1000} s`));
  }, deadlineMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
