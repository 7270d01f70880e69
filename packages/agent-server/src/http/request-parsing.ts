import type { Request, RequestHandler } from 'express';
import { z, type ZodError, type ZodType } from 'zod';
import { toConversationId } from '@slipway/agent-protocol/conversation-schemas.js';
import { KeyedLimit } from '@slipway/common/async.js';
import {
  type BodyBounds,
  isJson,
  mayHaveBody,
  readJsonBody,
  receiveByDeadline,
} from '@slipway/common/requests/json-body.js';
import { normalizeTimestamp } from '../event-log.js';
import { existing, InvalidRequestError, type RequestProblem } from './http-error.js';
import type { Conversations } from '../conversations/conversations.js';

/** Messages contain images. The service takes no event of more than 8 MiB, and an event has more than its message. */
const BODY_BOUNDS: BodyBounds = { bytes: 7 * 1024 * 1024, values: 200_000 };
const BODY_DEADLINE_MS = 60_000;
const BODIES_AT_ONCE = 4;

/** Reads the JSON bodies of routes behind it. Bodies of other types are left to the routes. */
export function jsonBodies(): RequestHandler {
  const limit = new KeyedLimit(BODIES_AT_ONCE);
  return async (request, response, next) => {
    if (mayHaveBody(request) && isJson(request.headers)) {
      request.body = await receiveByDeadline(request, BODY_DEADLINE_MS, () =>
        limit.run('', () => readJsonBody(request, response, BODY_BOUNDS)),
      );
    }
    next();
  };
}

/** A part of a request. @throws InvalidRequestError that names every broken rule, without the values */
export function parseRequest<T>(
  schema: ZodType<T>,
  part: 'body' | 'query' | 'path' | 'header',
  value: unknown,
): T {
  const result = schema.safeParse(value);
  if (result.success) {
    return result.data;
  }
  throw new InvalidRequestError(...toProblems(result.error, part));
}

/** The path from `?path=`, or from `*path` behind the route, there with its own slash or with escaped slashes. */
export function requestedPath(request: Request): string {
  const params: Record<string, unknown> = request.params;
  const behind = params['path'];
  if (Array.isArray(behind)) {
    return behind.join('/');
  }
  const { path } = request.query;
  if (typeof path !== 'string') {
    throw new InvalidRequestError({ type: 'missing', loc: ['query', 'path'], msg: 'Field required' });
  }
  return path;
}

/** The ids of entries: the published API sends them in a body, but not every client can do that with a GET. */
export function requestedIds(request: Request): string[] {
  const idsSchema = z.array(z.string()).max(100);
  return Array.isArray(request.body)
    ? parseRequest(idsSchema, 'body', request.body)
    : parseRequest(listSchema.pipe(idsSchema), 'query', request.query['ids']);
}

/** @throws HttpError 404 when the id is not a UUID, because no conversation has such an id */
export function requireConversationId(text: string): string {
  return existing(toConversationId(text), 'Conversation not found');
}

/** An empty `page_id` counts as none. */
export const pageIdSchema = z
  .string()
  .transform((id) => id || undefined)
  .optional();

export const limitSchema = z.coerce.number().int().min(1).max(100).default(100);

const timestampSchema = z.string().transform((text, context) => {
  const timestamp = normalizeTimestamp(text);
  if (timestamp === null) {
    context.addIssue({ code: 'custom', message: 'Input should be a valid date and time' });
    return z.NEVER;
  }
  return timestamp;
});

/** Which entries of a log. */
export const logPeriod = {
  timestamp__gte: timestampSchema.optional(),
  timestamp__lt: timestampSchema.optional(),
};

/** Which of them a page has. */
export const logPage = {
  page_id: pageIdSchema,
  limit: limitSchema,
  sort_order: z.enum(['TIMESTAMP', 'TIMESTAMP_DESC']).default('TIMESTAMP'),
};

export function isInPeriod(
  { timestamp }: { timestamp: string },
  {
    timestamp__gte: begin,
    timestamp__lt: end,
  }: { timestamp__gte?: string | undefined; timestamp__lt?: string | undefined },
): boolean {
  return (begin === undefined || timestamp >= begin) && (end === undefined || timestamp < end);
}

/** A parameter that may be given several times. */
export const listSchema = z.union([z.string().transform((one) => [one]), z.array(z.string())]);

function toProblems(error: ZodError, part: string): RequestProblem[] {
  return error.issues.map(({ code, message, path }) => ({
    type: message.endsWith('received undefined') ? 'missing' : code,
    loc: [part, ...path.map((step) => (typeof step === 'symbol' ? String(step) : step))],
    msg: message.endsWith('received undefined') ? 'Field required' : message,
  }));
}

/** The folder that relative paths of a request start from; null if they are refused or have a folder of their own. */
export type BaseFolder = (request: Request) => string | null;

export const nowhere: BaseFolder = () => null;

/** The working folder of the conversation in the request's path. @throws HttpError 404 */
export function runtimeFolder(conversations: Conversations): BaseFolder {
  return ({ params }) =>
    conversations.get(requireConversationId(String(params['runtime']))).record.workingDir;
}

/** Refuses every request for a conversation that does not exist, whether it names a path or not. */
export function requireRuntime(baseFolder: BaseFolder): RequestHandler {
  return (request, _response, next) => {
    baseFolder(request);
    next();
  };
}
