import { applyDecorators, Controller, Get, Query } from '@nestjs/common';
import {
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiSecurity,
  ApiTags,
  getSchemaPath,
} from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { parsePageId, toPage } from '../../common/pagination/page.js';
import {
  SandboxSpecDto,
  SandboxSpecIdsQueryDto,
  SandboxSpecPageDto,
  SearchSandboxSpecsQueryDto,
  toSandboxSpecDto,
  toSandboxSpecPageDto,
} from './sandbox-spec.dto.js';
import { SandboxSpecs } from './sandbox-specs.js';

/** Documents `GET /api/v1/sandbox-specs/search`. */
function SearchSandboxSpecsOperation(): MethodDecorator & ClassDecorator {
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
function GetSandboxSpecsOperation(): MethodDecorator & ClassDecorator {
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

const DEFAULT_LIMIT = 100;

@ApiTags('Sandboxes')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/sandbox-specs')
export class SandboxSpecsController {
  constructor(private readonly specs: SandboxSpecs) {}

  @Get('search')
  @SearchSandboxSpecsOperation()
  search(
    @Query() { page_id: pageId, limit = DEFAULT_LIMIT }: SearchSandboxSpecsQueryDto,
  ): SandboxSpecPageDto {
    const all = this.specs.all();
    const start =
      parsePageId('sandbox-specs', pageId, (after) => all.findIndex(({ id }) => id === after) + 1 || null) ??
      0;
    return toSandboxSpecPageDto(
      toPage('sandbox-specs', all.slice(start, start + limit + 1), limit, ({ id }) => id),
    );
  }

  @Get()
  @GetSandboxSpecsOperation()
  get(@Query() { id: ids }: SandboxSpecIdsQueryDto): (SandboxSpecDto | null)[] {
    return ids.map((id) => {
      const spec = this.specs.find(id);
      return spec && toSandboxSpecDto(spec);
    });
  }
}
