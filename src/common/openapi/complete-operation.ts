import {
  ADMINISTRATORS_ONLY,
  type DocumentedProblem,
  FURTHER_PROBLEMS,
  OPEN_TO_EVERYONE,
  ROUTE_RULES,
  type RouteRules,
  thrown,
} from '@slipway/api/openapi/api-route.js';
import { inputsOf, invalidInputExample, jsonBodyOf } from '@slipway/api/openapi/invalid-input-example.js';
import type { Operation, Schemas } from '@slipway/api/openapi/operations.js';
import { insufficientScope, type Scope } from '../scopes.js';
import { invalidInputResponse, problemResponses } from './problem-responses.js';

export const API_KEY_SCHEME = 'APIKeyHeader';
export const SESSION_SCHEME = 'SessionCookie';

export interface Marks {
  /** What a key needs. */
  'x-scope'?: Scope | 'none';
  [OPEN_TO_EVERYONE]?: boolean;
  [ADMINISTRATORS_ONLY]?: boolean;
  [FURTHER_PROBLEMS]?: readonly DocumentedProblem[];
  [ROUTE_RULES]?: RouteRules;
}

/** Adds what follows from guards, body and parameters: the key, its scope, and how a request can fail. */
export function completeOperation(
  operation: Operation & Marks,
  schemas: Schemas,
  scope: Scope | 'none' = 'none',
): void {
  const { problems = [], invalid, examples } = operation[ROUTE_RULES] ?? {};
  const body = jsonBodyOf(operation);
  if (operation[OPEN_TO_EVERYONE] !== true) {
    operation.security ??= [{ [API_KEY_SCHEME]: [] }, { [SESSION_SCHEME]: [] }];
  }
  if (body && examples) {
    body.examples = examples;
  }
  const own = problems.map((problem) => (typeof problem === 'number' ? { status: problem } : problem));
  const isOwn = (status: number): boolean => own.some((problem) => problem.status === status);
  const derived = [
    ...(operation.security ? [401, 429, 500, 503] : [431, 500]),
    ...(operation[FURTHER_PROBLEMS] ?? []),
    ...(operation[ADMINISTRATORS_ONLY] === true ? [403] : []),
    ...(scope === 'none' ? [] : [thrown(insufficientScope(scope))]),
    // A route with a limit of its own says what it is.
    ...(body ? [413, 415].filter((status) => !isOwn(status)) : []),
  ];
  const isChecked = body !== undefined || inputsOf(operation, schemas).length > 0;
  operation.responses = {
    ...operation.responses,
    ...problemResponses([...derived, ...own]),
    ...((isChecked || isOwn(422)) && {
      422: invalidInputResponse(
        typeof invalid === 'object' ? invalid : invalidInputExample(operation, schemas, invalid),
      ),
    }),
  };
  operation['x-scope'] = scope;
  delete operation[OPEN_TO_EVERYONE];
  delete operation[ADMINISTRATORS_ONLY];
  delete operation[FURTHER_PROBLEMS];
  delete operation[ROUTE_RULES];
}
