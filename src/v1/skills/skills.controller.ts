import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { parsePageId, toPage } from '../../common/pagination/page.js';
import { OperatorSkills } from './operator-skills.js';
import { SearchSkillsQueryDto, SkillPageDto, toSkillPageDto } from './skills.dto.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Skills')
@Controller('api/v1/skills')
export class SkillsController {
  constructor(private readonly skills: OperatorSkills) {}

  @Get('search')
  @ApiRoute('search_skills', 'List the skills that every agent has', {
    description:
      'Those of the operator (SKILLS_DIR), by name. What a repository has for agents is listed with a conversation.',
    answer: { type: SkillPageDto, description: 'A page of skills' },
  })
  search(@Query() { page_id: pageId, limit = DEFAULT_LIMIT }: SearchSkillsQueryDto): SkillPageDto {
    const all = this.skills.all();
    const start =
      parsePageId('skills', pageId, (after) => all.findIndex(({ name }) => name === after) + 1 || null) ?? 0;
    return toSkillPageDto(toPage('skills', all.slice(start, start + limit + 1), limit, ({ name }) => name));
  }
}
