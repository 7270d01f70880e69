import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { MalformedBodyError } from '@slipway/common/requests/json-body.js';
import { answeredRequestId, currentRequest } from '../requests/request-context.js';
import { type EdgeCode, InvalidInputError, ProblemError } from './problem-error.js';
import { invalidInputBody, problem, problemMediaType, problemOf, type Problem } from './problem.js';

const MIB = 1_048_576;

interface ProblemResponse {
  body: Problem | InvalidInputError;
  status: number;
  headers?: Record<string, string>;
}

/** A failure that is not the service's own, as of its database: the same request can succeed later. */
export interface PassingFailure {
  code: string;
  detail: string;
  log: string;
  retryAfterSeconds: number;
}

interface ProblemFilterOptions {
  /** Counts answers by their code. */
  onProblem?: (code: string) => void;
  /** Null: the error is a defect. */
  passingFailure?: (error: unknown) => PassingFailure | null;
}

interface RouteLayer {
  match(path: string): boolean;
  route: { methods: Record<string, boolean | undefined> };
}

/** The only place that turns errors into HTTP responses. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger(ProblemFilter.name);

  constructor(private readonly options: ProblemFilterOptions = {}) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const { status, body, headers } = this.toResponse(exception, request);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const type = problemMediaType(request.headers.accept);
    const sent = body instanceof InvalidInputError ? invalidInputBody(body, type, requestId()) : body;
    if ('code' in sent) {
      this.options.onProblem?.(sent.code);
    }
    const text = JSON.stringify(sent);
    response.writeHead(status, {
      ...headers,
      'Cache-Control': 'no-store',
      'Content-Type': `${type}; charset=utf-8`,
      'Content-Length': Buffer.byteLength(text),
    });
    response.end(text);
  }

  private toResponse(exception: unknown, request: Request): ProblemResponse {
    const error = unwrap(exception);
    if (error instanceof InvalidInputError) {
      return { status: 422, body: error };
    }
    if (error instanceof MalformedBodyError) {
      return malformedBody(error);
    }
    if (error instanceof ProblemError) {
      const body = problemOf(error, requestId());
      return { status: body.status, body, headers: retryAfter(error.retryAfterSeconds) };
    }
    if (error instanceof HttpException) {
      return httpException(error, request);
    }
    if (error instanceof URIError) {
      return nothingHere();
    }
    const failure = this.options.passingFailure?.(error) ?? null;
    if (failure !== null) {
      this.logger.error(failure.log, { error: String(error) });
      const body = problem(503, failure.code, failure.detail, requestId());
      return { status: 503, body, headers: retryAfter(failure.retryAfterSeconds) };
    }
    this.logger.error('failed to handle request', errorStack(error));
    return answer(500, 'internal', 'Something went wrong here; the log has it under this request id.');
  }
}

function answer(
  status: number,
  code: EdgeCode,
  detail: string,
  headers: Record<string, string> = {},
): ProblemResponse {
  return { status, body: problem(status, code, detail, requestId()), headers };
}

function requestId(): string | null {
  const context = currentRequest();
  return context === undefined ? null : answeredRequestId(context);
}

/** Nest wraps an error that middleware passes to `next`, with the original as its cause. */
function unwrap(exception: unknown): unknown {
  if (exception instanceof HttpException && exception.cause !== undefined) {
    const { cause } = exception;
    if (
      cause instanceof InvalidInputError ||
      cause instanceof MalformedBodyError ||
      cause instanceof ProblemError
    ) {
      return cause;
    }
  }
  return exception;
}

function sizeText(bytes: number): string {
  return bytes < MIB ? `${bytes} bytes` : `${bytes / MIB} MiB`;
}

function malformedBody({ reason, limit }: MalformedBodyError): ProblemResponse {
  switch (reason) {
    case 'too_large':
      return tooLarge(sizeText(limit ?? MIB));
    case 'too_many_values':
      return tooLarge(`${limit?.toLocaleString('en')} values and keys`);
    case 'media_type':
      return answer(
        415,
        'unsupported_media_type',
        'Send JSON in UTF-8, with the header Content-Type: application/json.',
      );
    case 'encoding':
      return invalidJson('Expected JSON in UTF-8.');
    case 'too_deep':
      return invalidJson(`Expected at most ${limit} levels of nesting.`);
    case 'syntax':
    case 'aborted':
      return invalidJson('Expected one complete JSON value.');
  }
}

function tooLarge(most: string): ProblemResponse {
  return answer(413, 'payload_too_large', `The request body may have at most ${most}.`);
}

function invalidJson(msg: string): ProblemResponse {
  return { status: 422, body: new InvalidInputError({ loc: ['body'], msg, type: 'json_invalid' }) };
}

function httpException(error: HttpException, request: Request): ProblemResponse {
  const status = error.getStatus();
  const methods = status === 404 ? allowedMethods(request) : [];
  if (methods.length > 0 && !methods.includes(request.method)) {
    const allow = methods.join(', ');
    return answer(405, 'method_not_allowed', `This address answers to ${allow}.`, { Allow: allow });
  }
  // 400 is Nest's error for an address that cannot be decoded; unreadable bodies have an error of our own.
  if (status === 404 || status === 400) {
    return nothingHere();
  }
  if (status === 413) {
    return tooLarge(sizeText(MIB));
  }
  return answer(status, status < 500 ? 'not_found' : 'internal', 'The request could not be answered.');
}

function nothingHere(): ProblemResponse {
  return answer(404, 'not_found', 'There is nothing at this address; /docs shows what there is.');
}

function retryAfter(seconds: number | undefined): Record<string, string> {
  return seconds === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(seconds))) };
}

function allowedMethods(request: Request): string[] {
  const layers: readonly object[] = request.app.router.stack;
  const methods = new Set<string>();
  for (const layer of layers) {
    if (isRouteLayer(layer) && layer.match(request.path)) {
      for (const [method, present] of Object.entries(layer.route.methods)) {
        if (present === true && method !== '_all') {
          methods.add(method.toUpperCase());
        }
      }
    }
  }
  if (methods.has('GET')) {
    methods.add('HEAD');
  }
  return [...methods].toSorted();
}

function isRouteLayer(layer: object): layer is RouteLayer {
  return 'route' in layer && layer.route !== undefined && 'match' in layer;
}
