import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonNumber } from '@slipway/common/json-access.js';
import { MalformedBodyError } from '@slipway/common/requests/json-body.js';
import { AgentUnavailableError } from '../engine/agent-engine.js';
import { errorName, log } from '../observability.js';
import { HttpError, InvalidRequestError } from './http-error.js';

const MIB = 1024 * 1024;

export function errorHandler(error: unknown, request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error);
    return;
  }
  if (error instanceof InvalidRequestError) {
    response.status(422).json({ detail: error.problems });
    return;
  }
  if (error instanceof HttpError) {
    response.status(error.status).json({ detail: error.message });
    return;
  }
  if (error instanceof AgentUnavailableError) {
    response.status(502).json({ detail: error.message });
    return;
  }
  const bodyProblem = bodyProblemOf(error);
  if (bodyProblem !== null) {
    response.status(bodyProblem.status).json({ detail: bodyProblem.detail });
    return;
  }
  const errorId = randomUUID();
  const exception = errorName(error);
  log('error', 'failed to handle request', {
    error_id: errorId,
    method: request.method,
    path: request.path,
    exception,
    error: errorMessage(error),
  });
  // The name alone: a message may hold what the client must not see.
  response.status(500).json({ detail: 'Internal Server Error', exception, error_id: errorId });
}

/** Unreadable bodies, and failures of Express, which carry a status. Their messages may quote the request. */
function bodyProblemOf(error: unknown): { status: number; detail: unknown } | null {
  if (error instanceof MalformedBodyError) {
    return malformedBody(error);
  }
  const status = jsonNumber(error, 'status');
  return status !== null && status >= 400 && status < 500
    ? { status, detail: 'The request cannot be understood.' }
    : null;
}

function malformedBody({ reason, limit }: MalformedBodyError): { status: number; detail: unknown } {
  switch (reason) {
    case 'too_large':
      return { status: 413, detail: `The request body may have at most ${(limit ?? 0) / MIB} MiB.` };
    case 'too_many_values':
      return { status: 413, detail: `The request body may have at most ${limit} values and keys.` };
    case 'media_type':
      return { status: 415, detail: 'Send JSON in UTF-8.' };
    case 'too_deep':
      return invalidJson(`JSON may have at most ${limit} levels`);
    case 'encoding':
    case 'syntax':
    case 'aborted':
      return invalidJson('JSON decode error');
  }
}

function invalidJson(msg: string): { status: number; detail: unknown } {
  return { status: 422, detail: [{ type: 'json_invalid', loc: ['body'], msg }] };
}
