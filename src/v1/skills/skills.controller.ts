import { Controller, Get, Query } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { Shown } from '@slipway/api/openapi/responses.js';
import { PageOf, PageQuery, toPageDto } from '@slipway/api/pagination/page.dto.js';
import { pageOfAll } from '@slipway/api/pagination/page.js';
import { type OperatorSkill, OperatorSkills } from './operator-skills.js';

class SearchSkillsQueryDto extends PageQuery('Skills on a page.') {}

class SkillInfoDto {
  @ApiProperty({ example: 'release-notes' }) name: string;

  @Shown(
    'repo: always part of the prompt. knowledge: given to the agent with a message that has a trigger.',
    'knowledge',
  )
  type: string;

  @ApiProperty({ description: 'Who has it: the operator, for everybody.', example: 'global' }) source: string;
  @ApiProperty({ type: [String], nullable: true, example: ['changelog'] }) triggers: string[] | null;
}

class SkillPageDto extends PageOf(SkillInfoDto) {}

function toSkillInfoDto({ name, triggers }: OperatorSkill): SkillInfoDto {
  const isAlways = triggers.length === 0;
  return {
    name,
    type: isAlways ? 'repo' : 'knowledge',
    source: 'global',
    triggers: isAlways ? null : triggers,
  };
}

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
