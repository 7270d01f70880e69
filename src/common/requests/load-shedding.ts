import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../errors/domain-error.js';
import { mayHaveBody } from './json-body.js';
import type { Middleware } from './middleware.js';

/** By then the requests under way are over; clients that all come back at once would be refused again. */
const RETRY_AFTER_SECONDS = { least: 1, most: 3 };
/** Probes have to be answered above all while there is much to do; streams last for hours and cost little. */
const EXEMPT = /^\/(?:health|health\/live|health\/ready|ready|alive)$|\/events\/stream$/;

/**
 * Refuses requests while as many are under way as this process may have: beyond saturation each further one would only
 * make all of them late, until their clients give up and the work has been done for nobody.
 *
 * A request with a body counts once the body is there, and none counts after its response has ended, so a client that sends
 * or reads slowly takes no place from others.
 */
export class LoadShedding {
  readonly #limit: number;
  #underWay = 0;

  /** @param limit requests under way in this process; 0: any number */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Requests under way. */
  get underWay(): number {
    return this.#underWay;
  }

  /** The error that refuses a request before Express handles it; null: the request is accepted. */
  handlerOf(request: IncomingMessage): (() => Promise<never>) | null {
    return this.#isReached && !isExempt(request) ? () => Promise.reject(overloaded()) : null;
  }

  /** Counts requests, and refuses those that the entrance leaves to Express; precedes all that works on them. */
  middleware(): Middleware {
    return (request, response, next) => {
      if (this.#limit === 0 || isExempt(request)) {
        next();
        return;
      }
      if (this.#isReached) {
        next(overloaded());
        return;
      }
      if (mayHaveBody(request)) {
        request.once('end', () => this.#count(response));
      } else {
        this.#count(response);
      }
      next();
    };
  }

  get #isReached(): boolean {
    return this.#limit > 0 && this.#underWay >= this.#limit;
  }

  #count(response: ServerResponse): void {
    if (response.writableEnded || response.destroyed) {
      return;
    }
    this.#underWay += 1;
    let isOver = false;
    const end = (): void => {
      if (!isOver) {
        isOver = true;
        this.#underWay -= 1;
      }
    };
    // All of the response has been handed over, or the client has gone.
    response.once('prefinish', end);
    response.once('close', end);
  }
}

function isExempt({ url = '' }: IncomingMessage): boolean {
  const query = url.indexOf('?');
  return EXEMPT.test(query === -1 ? url : url.slice(0, query));
}

function overloaded(): DomainError {
  const { least, most } = RETRY_AFTER_SECONDS;
  return new DomainError(
    'unavailable',
    'overloaded',
    'The service has more to do than it can at the moment; wait as long as Retry-After says.',
    { retryAfterSeconds: least + Math.floor(Math.random() * (most - least + 1)) },
  );
}
