import { applyDecorators } from '@nestjs/common';
import {
  ApiBody,
  ApiExtraModels,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  getSchemaPath,
} from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../../../common/openapi/problems.js';
import { SuccessDto } from '../../../common/openapi/responses.js';
import { CreateSandboxDto, SandboxPageDto, SandboxDto } from './sandbox.dto.js';

const UNKNOWN: DocumentedProblem = { status: 404, detail: 'There is no sandbox with this id.' };
const ALL_BUSY: DocumentedProblem = {
  status: 429,
  code: 'sandbox_limit',
  detail: 'All 5 sandboxes that may run at a time are busy. Pause or delete one, or wait until one is idle.',
  description:
    'Too many requests, or no place for one more sandbox: all are busy, or none is paused to make room here ' +
    '(SANDBOX_LIMIT_POLICY)',
};
/** Also of the routes that start conversations. */
export const TOO_MANY_SANDBOXES: DocumentedProblem = {
  status: 409,
  code: 'stored_sandbox_limit',
  detail:
    'You have 1000 sandboxes, the most that are kept, paused ones included. Delete some of them (DELETE /api/v1/sandboxes/{id}), then try again.',
  description: 'As many sandboxes as one user may have (MAX_SANDBOXES_PER_USER)',
};
const NOT_SEPARATED: DocumentedProblem = {
  status: 403,
  detail: 'Another user has sandboxes, and nothing separates sandboxes on this machine from each other.',
  description: 'The operator has to allow this (ALLOW_UNSANDBOXED)',
};
const ID = ApiParam({
  name: 'id',
  description: 'Id of the sandbox.',
  schema: { type: 'string', maxLength: 64, example: '3Yv5mQ8hZk2LrTnBx7Wc0d' },
});
const BAD_PATH = invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.');

/** Documents `GET /api/v1/sandboxes/search`. */
export function SearchSandboxesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_sandboxes',
      summary: 'List sandboxes',
      description: 'Your own, newest first.',
    }),
    ApiOkResponse({ type: SandboxPageDto, description: 'A page of sandboxes' }),
    ApiProblems(invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.')),
  );
}

/** Documents `GET /api/v1/sandboxes`. */
export function GetSandboxesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(SandboxDto),
    ApiOperation({
      operationId: 'get_sandboxes',
      summary: 'Look up sandboxes',
      description: 'In the order of the ids asked for, with null for each that is unknown or not yours.',
    }),
    ApiOkResponse({
      description: 'One element for each id',
      schema: { type: 'array', items: { oneOf: [{ $ref: getSchemaPath(SandboxDto) }, { type: 'null' }] } },
    }),
    ApiProblems(invalidInput(['query', 'id'], 'missing', 'This member is required.')),
  );
}

/** Documents `POST /api/v1/sandboxes`. */
export function CreateSandboxOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(CreateSandboxDto),
    ApiOperation({
      operationId: 'create_sandbox',
      summary: 'Start a sandbox',
      description:
        'Answers at once with a sandbox that is STARTING; ask `GET /api/v1/sandboxes?id=` until it is RUNNING, or ERROR ' +
        'and says why. Where as many run as may, the longest idle one is paused, and `status_detail` of the new one ' +
        'names it, unless the operator wants the request refused then. Starting a conversation makes a sandbox by ' +
        'itself.',
    }),
    ApiHeader({
      name: 'Idempotency-Key',
      description: 'A repetition of the request under this key answers the same sandbox, for 24 hours.',
      schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
      example: '0c3b2a19-7d6e-4f50-8a9b-0c1d2e3f4a5b',
    }),
    ApiBody({
      required: false,
      schema: { anyOf: [{ $ref: getSchemaPath(CreateSandboxDto) }, { type: 'null' }] },
      examples: { default: { summary: 'The default specification', value: {} } },
    }),
    ApiOkResponse({ type: SandboxDto, description: 'The sandbox' }),
    ApiProblems(
      NOT_SEPARATED,
      {
        status: 404,
        detail: 'There is no sandbox specification with this id; see GET /api/v1/sandbox-specs/search.',
        description: 'Unknown specification',
      },
      TOO_MANY_SANDBOXES,
      {
        status: 410,
        code: 'not_found',
        detail: 'The sandbox that this Idempotency-Key made was deleted.',
        description: 'Made under this key, and deleted since',
      },
      413,
      415,
      ALL_BUSY,
      invalidInput(
        ['header', 'Idempotency-Key'],
        'value_error',
        'This key was used for a request with another content; use a new one.',
      ),
    ),
  );
}

/** Documents `POST /api/v1/sandboxes/{id}/pause`. */
export function PauseSandboxOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'pause_sandbox',
      summary: 'Pause a sandbox',
      description:
        'Ends every process in it, which frees memory and processor; files and conversations stay. A conversation that was ' +
        'running is paused after the resume, until it gets a message or is told to run. (What the service itself pauses ' +
        'goes on by itself.) The response comes when everything has ended and the sandbox is PAUSED, at the latest after ten ' +
        'seconds; until then it is RUNNING.',
    }),
    ID,
    ApiOkResponse({
      type: SuccessDto,
      description: 'It is paused; after ten seconds: it will be as soon as everything in it has ended',
    }),
    ApiProblems(UNKNOWN, BAD_PATH),
  );
}

/** Documents `POST /api/v1/sandboxes/{id}/resume`. */
export function ResumeSandboxOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'resume_sandbox',
      summary: 'Resume a sandbox',
      description:
        'After a pause, or after an error. It is STARTING then. Where as many run as may, the longest idle one is ' +
        'paused, and `status_detail` names it while this one starts, unless the operator wants the request refused ' +
        'then. Nothing happens when it runs already.',
    }),
    ID,
    ApiOkResponse({ type: SuccessDto, description: 'It runs, or is about to' }),
    ApiProblems(NOT_SEPARATED, UNKNOWN, ALL_BUSY, BAD_PATH),
  );
}

/** Documents `DELETE /api/v1/sandboxes/{id}`. */
export function DeleteSandboxOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_sandbox',
      summary: 'Delete a sandbox',
      description:
        'With its files, whatever it is doing. Its conversations stay readable; their `sandbox_status` is MISSING.',
    }),
    ID,
    ApiOkResponse({
      type: SuccessDto,
      description: 'It is unknown from now on; its files go in the background',
    }),
    ApiProblems(
      UNKNOWN,
      invalidInput(['query', 'sandbox_id'], 'value_error', 'Expected the same id as in the path, or none.'),
    ),
  );
}
