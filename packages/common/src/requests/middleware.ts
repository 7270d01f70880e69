import type { IncomingMessage, ServerResponse } from 'node:http';

export type Next = (error?: unknown) => void;

/** Does not depend on Express, but Express accepts it as middleware. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void;
