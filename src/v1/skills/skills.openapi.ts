import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { SkillPageDto } from './skills.dto.js';

/** Documents `GET /api/v1/skills/search`. */
export function SearchSkillsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_skills',
      summary: 'List the skills that every agent has',
      description:
        'Those of the operator (SKILLS_DIR), by name. What a repository has for agents is listed with a conversation.',
    }),
    ApiOkResponse({ type: SkillPageDto, description: 'A page of skills' }),
    ApiProblems(invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.')),
  );
}
