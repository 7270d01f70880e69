import type { IncomingMessage, ServerResponse } from 'node:http';

export type Next = (error?: unknown) => void;

export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void;
