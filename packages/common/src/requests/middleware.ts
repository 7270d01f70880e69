import type { IncomingMessage, ServerResponse } from 'node:http';

/** Calls the next step, or ends with an error. */
export type Next = (error?: unknown) => void;

/** A step between socket and handler that does not depend on Express, but that Express accepts as middleware. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void;
