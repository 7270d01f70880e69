import { Controller, Get, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { decodePageId, toPage } from '../../common/pagination/page.js';
import { OperatorSkills } from './operator-skills.js';
import { SearchSkillsQueryDto, type SkillPageDto, toSkillPageDto } from './skills.dto.js';
import { SearchSkillsOperation } from './skills.openapi.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Skills')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/skills')
export class SkillsController {
  constructor(private readonly skills: OperatorSkills) {}

  @Get('search')
  @SearchSkillsOperation()
  search(@Query() { page_id: pageId, limit = DEFAULT_LIMIT }: SearchSkillsQueryDto): SkillPageDto {
    const all = this.skills.all();
    const after = decodePageId(pageId);
    const start = after === null ? 0 : all.findIndex(({ name }) => name === after) + 1;
    return toSkillPageDto(toPage(all.slice(start, start + limit + 1), limit, ({ name }) => name));
  }
}
