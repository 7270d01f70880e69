import { Controller, Get, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { decodePageId, toPage } from '../../common/pagination/page.js';
import {
  SandboxSpecIdsQueryDto,
  type SandboxSpecPageDto,
  toSandboxSpecPageDto,
  type SandboxSpecDto,
  toSandboxSpecDto,
  SearchSandboxSpecsQueryDto,
} from './sandbox-spec.dto.js';
import { GetSandboxSpecsOperation, SearchSandboxSpecsOperation } from './sandbox-specs.openapi.js';
import { SandboxSpecs } from './sandbox-specs.js';

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
    const after = decodePageId(pageId);
    const start = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
    return toSandboxSpecPageDto(toPage(all.slice(start, start + limit + 1), limit, ({ id }) => id));
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
