import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { listWithNulls } from '../../common/openapi/responses.js';
import { toPageDto } from '../../common/pagination/page.dto.js';
import { pageOfAll } from '../../common/pagination/page.js';
import {
  SandboxSpecDto,
  SandboxSpecIdsQueryDto,
  SandboxSpecPageDto,
  SearchSandboxSpecsQueryDto,
  toSandboxSpecDto,
} from './sandbox-spec.dto.js';
import { SandboxSpecs } from './sandbox-specs.js';

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
