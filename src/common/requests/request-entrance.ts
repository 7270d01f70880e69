import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type Middleware, runMiddleware } from './middleware.js';

interface EntranceOptions {
  /** What every request goes through first. */
  steps: readonly Middleware[];
  /** Responds to a request that failed. */
  refuse: (error: unknown, request: IncomingMessage, response: ServerResponse) => void;
}

/** Takes every request through its first steps, before Express. */
export class RequestEntrance {
  constructor(private readonly options: EntranceOptions) {}

  /**
   * @param framework the listener that gets the requests after that
   * @returns the listener that takes its place
   */
  before(framework: RequestListener): RequestListener {
    return (request, response) => {
      try {
        runMiddleware(this.options.steps, request, response, (error) => {
          if (error === undefined) {
            framework(request, response);
          } else {
            this.options.refuse(error, request, response);
          }
        });
      } catch (error) {
        this.options.refuse(error, request, response);
      }
    };
  }
}
