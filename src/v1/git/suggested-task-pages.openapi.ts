import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import {
  PROVIDER_STATUS_HEADER,
  SUGGESTED_TASKS_EXAMPLE,
  SUGGESTED_TASKS_PROBLEMS,
} from '../../suggested-tasks/suggested-tasks.openapi.js';
import { SuggestedTaskPageDto } from './suggested-task-pages.dto.js';

/** Documents `GET /api/v1/git/suggested-tasks/search`. */
export function SearchSuggestedTasksOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_suggested_tasks',
      summary: 'Suggested tasks by pages',
      description: 'The tasks of GET /api/user/suggested-tasks, in the same order.',
    }),
    ApiOkResponse({
      type: SuggestedTaskPageDto,
      description: 'A page of tasks',
      headers: { 'X-Provider-Status': PROVIDER_STATUS_HEADER },
      example: { items: SUGGESTED_TASKS_EXAMPLE, next_page_id: null },
    }),
    ApiProblems(
      ...SUGGESTED_TASKS_PROBLEMS,
      invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.'),
    ),
  );
}
