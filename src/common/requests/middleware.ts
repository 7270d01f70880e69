import type { IncomingMessage, ServerResponse } from 'node:http';

/** Calls the next step, or ends with an error. */
export type Next = (error?: unknown) => void;

/** A step between socket and handler that does not depend on Express, but that Express accepts as middleware. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void;

/** Takes a request through the steps, in order; `done` follows the last one, or the first that ends with an error. */
export function runMiddleware(
  steps: readonly Middleware[],
  request: IncomingMessage,
  response: ServerResponse,
  done: Next,
  from = 0,
): void {
  const step = steps[from];
  if (step === undefined) {
    done();
    return;
  }
  step(request, response, (error) => {
    if (error === undefined) {
      runMiddleware(steps, request, response, done, from + 1);
    } else {
      done(error);
    }
  });
}
