import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { toPageDto } from '../../common/pagination/page.dto.js';
import { pageOfAll } from '../../common/pagination/page.js';
import { OperatorSkills } from './operator-skills.js';
import { SearchSkillsQueryDto, SkillPageDto, toSkillInfoDto } from './skills.dto.js';

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
  search(@Query() query: SearchSkillsQueryDto): SkillPageDto {
    return toPageDto(
      pageOfAll('skills', this.skills.all(), query, ({ name }) => name),
      toSkillInfoDto,
    );
  }
}
