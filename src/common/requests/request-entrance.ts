import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type Middleware, runMiddleware } from './middleware.js';

/** Responds to a request, or rejects with the reason why not. */
type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

interface EntranceOptions {
  /** What every request goes through first. */
  steps: readonly Middleware[];
  /** What responds to a request without Express; null leaves it to Express. */
  handlerOf: (request: IncomingMessage) => Handler | null;
  /** Responds to a request that failed. */
  refuse: (error: unknown, request: IncomingMessage, response: ServerResponse) => void;
}

/**
 * Takes every request through its first steps, and answers those that Express would take longer over than their handler.
 * Requests of pages from elsewhere, and the questions that browsers ask before them, are left to Express: they need the
 * rules for origins.
 */
export class RequestEntrance {
  constructor(private readonly options: EntranceOptions) {}

  /**
   * @param framework the listener that gets all other requests
   * @returns the listener that takes its place
   */
  before(framework: RequestListener): RequestListener {
    return (request, response) => {
      try {
        runMiddleware(this.options.steps, request, response, (error) => {
          if (error === undefined) {
            this.pass(request, response, framework);
          } else {
            this.options.refuse(error, request, response);
          }
        });
      } catch (error) {
        this.options.refuse(error, request, response);
      }
    };
  }

  private pass(request: IncomingMessage, response: ServerResponse, framework: RequestListener): void {
    const handler = needsOriginRules(request) ? null : this.options.handlerOf(request);
    if (handler === null) {
      framework(request, response);
    } else {
      void this.handle(handler, request, response);
    }
  }

  private async handle(handler: Handler, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await handler(request, response);
    } catch (error) {
      this.options.refuse(error, request, response);
    }
  }
}

function needsOriginRules({ headers, method }: IncomingMessage): boolean {
  return headers.origin !== undefined || method === 'OPTIONS';
}
