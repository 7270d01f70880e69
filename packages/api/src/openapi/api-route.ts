import { applyDecorators, Header, HttpCode } from '@nestjs/common';
import {
  ApiBody,
  ApiExtension,
  ApiExtraModels,
  ApiOperation,
  ApiResponse,
  type ApiResponseNoStatusOptions,
  getSchemaPath,
  type OpenAPIObject,
} from '@nestjs/swagger';
import type { InputProblem, ProblemError } from '../errors/problem-error.js';
import { statusOf } from '../errors/problem.js';
import type { DtoClass } from '../validation/field.js';
import { type SentWebhook, webhookItems } from './webhooks.js';

/** These extensions carry what a route says to the document builder, which removes them. */
export const ROUTE_RULES = 'x-route-rules';
export const OPEN_TO_EVERYONE = 'x-open-to-everyone';
export const ADMINISTRATORS_ONLY = 'x-administrators-only';
/** What guards of the route refuse, as problems. */
export const FURTHER_PROBLEMS = 'x-further-problems';

export interface DocumentedProblem {
  status: number;
  code?: string;
  detail?: string;
  /** When several problems share a status, the first description counts. */
  description?: string;
  extensions?: Record<string, unknown>;
}

/** A problem with the usual code of its status; 409 is a conflict. */
export function documented(status: number, detail: string, description?: string): DocumentedProblem {
  return { status, detail, description, ...(status === 409 && { code: 'conflict' }) };
}

/** What a service throws, with what it means to the clients of the route. */
export function thrown(error: ProblemError, description?: string): DocumentedProblem {
  const { code, message, extensions } = error;
  return { status: statusOf(error), code, detail: message, description, extensions };
}

/** @param input where it is, such as `body.name` */
export function badInput(input: string, msg: string, type = 'value_error'): InputProblem {
  return { loc: input.split('.'), type, msg };
}

interface BodyExample {
  summary: string;
  value: object;
}

export interface RouteRules {
  /** A status in its usual meaning, or with the texts of this route. */
  problems?: readonly (number | DocumentedProblem)[];
  /** A failed validation, or the input that it follows from; unless given, the likeliest one. */
  invalid?: InputProblem | string;
  /** "Try it out" offers the first. */
  examples?: Record<string, BodyExample>;
  webhooks?: OpenAPIObject['webhooks'];
}

interface RouteDocumentation extends RouteRules {
  description?: string;
  status?: number;
  answer: ApiResponseNoStatusOptions;
  /** The parameter is a `Partial` of it: where it has the class itself, the global pipe asks for a body. */
  optionalBody?: DtoClass;
  /** Sent later because of the request, by type. */
  sends?: Readonly<Record<string, SentWebhook>>;
}

/**
 * Documents a route; the document builder adds what follows from guards, body and parameters.
 * @param id generated clients name their functions after it; `_` at its end stands for path and method, as FastAPI adds them
 */
export function ApiRoute(
  id: string,
  summary: string,
  { description, status = 200, answer, optionalBody, sends = {}, ...rules }: RouteDocumentation,
): MethodDecorator {
  const sent = Object.values(sends).map(([, data]) => data);
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ operationId: id, summary, description }),
    ApiResponse({ ...answer, status }),
    ...(isBare(answer) ? [Header('Content-Type', 'application/json; charset=utf-8')] : []),
    ApiExtension(ROUTE_RULES, { ...rules, webhooks: webhookItems(sends) }),
    ...(sent.length > 0 ? [ApiExtraModels(...sent)] : []),
    ...(optionalBody ? [ApiExtraModels(optionalBody), ApiBody(orNull(optionalBody))] : []),
  );
}

/** Nest sends what is no object as plain text unless it is told otherwise. */
function isBare(answer: ApiResponseNoStatusOptions): boolean {
  return 'schema' in answer && ['boolean', 'integer', 'string'].includes(String(Object(answer.schema).type));
}

function orNull(type: DtoClass): Parameters<typeof ApiBody>[0] {
  return { required: false, schema: { anyOf: [{ $ref: getSchemaPath(type) }, { type: 'null' }] } };
}
