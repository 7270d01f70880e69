import { ApiProperty } from '@nestjs/swagger';
import { Shown } from '../../common/openapi/responses.js';
import { PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import type { OperatorSkill } from './operator-skills.js';

export class SearchSkillsQueryDto extends PageQuery('Skills on a page.') {}

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

export class SkillPageDto extends PageOf(SkillInfoDto) {}

export function toSkillInfoDto({ name, triggers }: OperatorSkill): SkillInfoDto {
  const isAlways = triggers.length === 0;
  return {
    name,
    type: isAlways ? 'repo' : 'knowledge',
    source: 'global',
    triggers: isAlways ? null : triggers,
  };
}
