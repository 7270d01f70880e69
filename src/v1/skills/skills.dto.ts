import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/responses.js';
import type { Page } from '../../common/pagination/page.js';
import { Integer } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import type { OperatorSkill } from './operator-skills.js';

/** Query of `GET /api/v1/skills/search`. */
export class SearchSkillsQueryDto {
  @Text({ description: '`next_page_id` of the page before; empty for the first one.', example: '' })
  page_id?: string;

  @Integer({ description: 'Skills on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;
}

@ApiSchema({ name: 'SkillInfo' })
class SkillInfoDto {
  @ApiProperty({ example: 'release-notes' })
  name: string;

  @ApiProperty({
    description:
      'repo: always part of the prompt. knowledge: given to the agent with a message that has a trigger.',
    example: 'knowledge',
  })
  type: string;

  @ApiProperty({ description: 'Who has it: the operator, for everybody.', example: 'global' })
  source: string;

  @ApiProperty({ type: [String], nullable: true, example: ['changelog'] })
  triggers: string[] | null;
}

/** A page of skills. */
@ApiSchema({ name: 'SkillPage' })
export class SkillPageDto {
  @ApiProperty({ type: [SkillInfoDto] })
  items: SkillInfoDto[];

  @NextPageId()
  next_page_id: string | null;
}

export function toSkillPageDto({ items, nextPageId }: Page<OperatorSkill>): SkillPageDto {
  return {
    items: items.map(({ name, triggers }) => ({
      name,
      type: triggers.length === 0 ? 'repo' : 'knowledge',
      source: 'global',
      triggers: triggers.length === 0 ? null : triggers,
    })),
    next_page_id: nextPageId,
  };
}
