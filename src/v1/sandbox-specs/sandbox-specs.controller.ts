import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { listWithNulls } from '../../common/openapi/responses.js';
import { toPageDto } from '../../common/pagination/page.dto.js';
import { parsePageId, toPage } from '../../common/pagination/page.js';
import {
  SandboxSpecDto,
  SandboxSpecIdsQueryDto,
  SandboxSpecPageDto,
  SearchSandboxSpecsQueryDto,
  toSandboxSpecDto,
} from './sandbox-spec.dto.js';
import { SandboxSpecs } from './sandbox-specs.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Sandboxes')
@Controller('api/v1/sandbox-specs')
export class SandboxSpecsController {
  constructor(private readonly specs: SandboxSpecs) {}

  @Get('search')
  @ApiRoute('search_sandbox_specs', 'List sandbox specifications', {
    description: 'What a sandbox can be, in the order of the operator; the first is the default.',
    answer: { type: SandboxSpecPageDto, description: 'A page of specifications' },
  })
  search(
    @Query() { page_id: pageId, limit = DEFAULT_LIMIT }: SearchSandboxSpecsQueryDto,
  ): SandboxSpecPageDto {
    const all = this.specs.all();
    const start =
      parsePageId('sandbox-specs', pageId, (after) => all.findIndex(({ id }) => id === after) + 1 || null) ??
      0;
    return toPageDto(
      toPage('sandbox-specs', all.slice(start, start + limit + 1), limit, ({ id }) => id),
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
