import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonNumber } from '@slipway/common/json-access.js';
import { MalformedBodyError } from '@slipway/common/requests/json-body.js';
import { AgentUnavailableError } from '../engine/agent-engine.js';
import { errorName, log } from '../observability.js';
import { HttpError, InvalidRequestError } from './http-error.js';

const MIB = 1024 * 1024;
const NO_SPACE = 'No space is left on the disk of the sandbox: delete files that are not needed.';

export function errorHandler(error: unknown, request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error);
    return;
  }
  const known = knownProblem(error);
  if (known !== null) {
    response.status(known.status).json({ detail: known.detail });
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

interface Problem {
  status: number;
  detail: unknown;
}

/** Failures of Express carry a status. Their messages may quote the request. */
function knownProblem(error: unknown): Problem | null {
  if (error instanceof InvalidRequestError) {
    return { status: 422, detail: error.problems };
  }
  if (error instanceof HttpError) {
    return { status: error.status, detail: error.message };
  }
  if (error instanceof AgentUnavailableError) {
    return { status: 502, detail: error.message };
  }
  if (error instanceof MalformedBodyError) {
    return malformedBody(error);
  }
  if (['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')) {
    return { status: 507, detail: NO_SPACE };
  }
  const status = jsonNumber(error, 'status');
  return status !== null && status >= 400 && status < 500
    ? { status, detail: 'The request cannot be understood.' }
    : null;
}

function malformedBody({ reason, limit }: MalformedBodyError): Problem {
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

function invalidJson(msg: string): Problem {
  return { status: 422, detail: [{ type: 'json_invalid', loc: ['body'], msg }] };
}
