import { Controller, Get, Query } from '@nestjs/common';
import { ApiSchema, ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { listWithNulls, Shown, TEXT_MAP, Time } from '@slipway/api/openapi/responses.js';
import { LookupIds, PageOf, PageQuery, toPageDto } from '@slipway/api/pagination/page.dto.js';
import { pageOfAll } from '@slipway/api/pagination/page.js';
import { type SandboxSpec, SandboxSpecs } from './sandbox-specs.js';

class SandboxSpecIdsQueryDto {
  @LookupIds('Id of a specification', 'slipway') id: string[];
}

@ApiSchema({ name: 'SandboxSpecInfo' })
class SandboxSpecDto {
  @Shown('What `sandbox_spec_id` names. The first of the list is the default.', 'slipway') id: string;

  @Shown('Program and arguments; null for the agent server that comes with the service.', null, {
    type: [String],
    nullable: true,
  })
  command: string[] | null;

  @Time() created_at: string;

  @Shown('Variables that the program gets. Everybody can read them: they hold no secrets.', {}, TEXT_MAP)
  initial_env: Record<string, string>;

  @Shown('Where conversations work; a relative path lies in the folder of the sandbox.', '/workspace/project')
  working_dir: string;
}

function toSandboxSpecDto(spec: SandboxSpec): SandboxSpecDto {
  return {
    id: spec.id,
    command: commandOf(spec),
    created_at: spec.createdAt.toISOString(),
    initial_env: spec.env,
    working_dir: spec.workingDir,
  };
}

function commandOf({ program }: SandboxSpec): string[] | null {
  switch (program.kind) {
    case 'command':
      return [program.command, ...program.args];
    case 'image':
      return program.args;
    case 'native':
      return null;
  }
}

@ApiSchema({ name: 'SandboxSpecInfoPage' })
class SandboxSpecPageDto extends PageOf(SandboxSpecDto) {}

class SearchSandboxSpecsQueryDto extends PageQuery('Specifications on a page.') {}

@ApiTags('Sandboxes')
@Controller('api/v1/sandbox-specs')
export class SandboxSpecsController {
  constructor(private readonly specs: SandboxSpecs) {}

  @Get('search')
  @ApiRoute('search_sandbox_specs', 'List sandbox specifications', {
    description: 'What a sandbox can be, in the order of the operator; the first is the default.',
    answer: { type: SandboxSpecPageDto, description: 'A page of specifications' },
  })
  search(@Query() query: SearchSandboxSpecsQueryDto): SandboxSpecPageDto {
    return toPageDto(
      pageOfAll('sandbox-specs', this.specs.all(), query, ({ id }) => id),
      toSandboxSpecDto,
    );
  }

  @Get()
  @ApiRoute('get_sandbox_specs', 'Look up sandbox specifications', {
    description: 'In the order of the ids asked for, with null for each that does not exist.',
    answer: { schema: listWithNulls(SandboxSpecDto), description: 'One element for each id' },
  })
  get(@Query() { id: ids }: SandboxSpecIdsQueryDto): (SandboxSpecDto | null)[] {
    return ids.map((id) => {
      const spec = this.specs.find(id);
      return spec && toSandboxSpecDto(spec);
    });
  }
}
