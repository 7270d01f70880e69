import { applyDecorators, HttpCode } from '@nestjs/common';
import {
  ApiBody,
  ApiExtension,
  ApiExtraModels,
  ApiOperation,
  ApiResponse,
  type ApiResponseNoStatusOptions,
  getSchemaPath,
} from '@nestjs/swagger';
import type { ErrorCode, InputProblem } from '../errors/domain-error.js';
import type { DtoClass } from '../validation/field.js';

/** Carries what a route says through the generator to the document builder, which removes it. */
export const ROUTE_RULES = 'x-route-rules';
/** Likewise: the route needs no key. */
export const OPEN_TO_EVERYONE = 'x-open-to-everyone';
/** Likewise: the route is for administrators. */
export const ADMINISTRATORS_ONLY = 'x-administrators-only';

/** An error response of one operation. What is left out comes from the usual meaning of its status. */
export interface DocumentedProblem {
  status: number;
  code?: ErrorCode;
  detail?: string;
  /** Of the status in this operation. Where several problems share a status, the first description counts. */
  description?: string;
  /** Further members of the problem document. */
  extensions?: Record<string, unknown>;
}

interface BodyExample {
  summary: string;
  value: object;
}

/** What a route says for the document builder to derive its error responses from. */
export interface RouteRules {
  /** Errors of its own: a status in its usual meaning, or with the texts of this route. */
  problems?: readonly (number | DocumentedProblem)[];
  /** A failed validation that can happen here, or the input whose schema it follows from; the likeliest one unless given. */
  invalid?: InputProblem | string;
  /** Bodies by name. "Try it out" offers the first. */
  examples?: Record<string, BodyExample>;
}

interface RouteDocumentation extends RouteRules {
  /** The `operationId`, after which generated clients name their functions. */
  id: string;
  summary: string;
  /** Markdown. */
  description?: string;
  /** Of the answer; 200 unless given. */
  status?: number;
  answer: ApiResponseNoStatusOptions;
  /** The class of a body that may be left out. */
  optionalBody?: DtoClass;
}

/**
 * Says what a route does, what it answers and how it can fail. What follows from its guards, body and parameters is
 * not said here: the document builder adds it.
 */
export function ApiRoute({
  id,
  summary,
  description,
  status = 200,
  answer,
  optionalBody,
  ...rules
}: RouteDocumentation): MethodDecorator {
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ operationId: id, summary, description }),
    ApiResponse({ ...answer, status }),
    ApiExtension(ROUTE_RULES, rules),
    ...(optionalBody ? [ApiExtraModels(optionalBody), ApiBody(orNull(optionalBody))] : []),
  );
}

function orNull(type: DtoClass): Parameters<typeof ApiBody>[0] {
  return { required: false, schema: { anyOf: [{ $ref: getSchemaPath(type) }, { type: 'null' }] } };
}
