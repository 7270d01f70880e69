import { UpstreamError } from './upstream-error.js';

/**
 * Runs work until it settles, `timeoutMs` have passed or the caller's signal aborts, whichever is first. The
 * work gets a signal that aborts in the latter cases, and is not waited for then: a connection that is still
 * being opened may not react to it at once.
 *
 * @throws UpstreamError `timeout`, or what the work throws.
 */
export async function runWithDeadline<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  origin: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interruption = Promise.withResolvers<never>();
  const interrupt = (): void => {
    const error = new UpstreamError('timeout', origin);
    controller.abort(error);
    interruption.reject(error);
  };
  if (caller?.aborted) {
    throw new UpstreamError('timeout', origin);
  }
  const timer = setTimeout(interrupt, timeoutMs);
  caller?.addEventListener('abort', interrupt, { once: true });
  try {
    return await Promise.race([work(controller.signal), interruption.promise]);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener('abort', interrupt);
  }
}
