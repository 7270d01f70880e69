import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { SandboxSpecPageDto, SandboxSpecDto } from './sandbox-spec.dto.js';

/** Documents `GET /api/v1/sandbox-specs/search`. */
export function SearchSandboxSpecsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_sandbox_specs',
      summary: 'List sandbox specifications',
      description: 'What a sandbox can be, in the order of the operator; the first is the default.',
    }),
    ApiOkResponse({ type: SandboxSpecPageDto, description: 'A page of specifications' }),
    ApiProblems(invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.')),
  );
}

/** Documents `GET /api/v1/sandbox-specs`. */
export function GetSandboxSpecsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(SandboxSpecDto),
    ApiOperation({
      operationId: 'get_sandbox_specs',
      summary: 'Look up sandbox specifications',
      description: 'In the order of the ids asked for, with null for each that does not exist.',
    }),
    ApiOkResponse({
      description: 'One element for each id',
      schema: {
        type: 'array',
        items: { oneOf: [{ $ref: getSchemaPath(SandboxSpecDto) }, { type: 'null' }] },
      },
    }),
    ApiProblems(invalidInput(['query', 'id'], 'missing', 'This parameter is required.')),
  );
}
