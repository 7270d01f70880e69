import { applyDecorators, Controller, Get, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiSchema, ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { NextPageId } from '../../common/openapi/responses.js';
import { parseNumberCursor, parsePageId, toPage } from '../../common/pagination/page.js';
import { Integer } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import { SuggestedTaskDto, toSuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import {
  PROVIDER_STATUS_HEADER,
  SUGGESTED_TASKS_EXAMPLE,
  SUGGESTED_TASKS_PROBLEMS,
} from '../../suggested-tasks/suggested-tasks.openapi.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';

/** Documents `GET /api/v1/git/suggested-tasks/search`. */
function SearchSuggestedTasksOperation(): MethodDecorator & ClassDecorator {
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

const DEFAULT_LIMIT = 30;
/** A page id holds how many tasks come before the page, at most these. */
const MAX_OFFSET = 9999;

/** Query of `GET /api/v1/git/suggested-tasks/search`. */
export class SearchSuggestedTasksQueryDto {
  @Text({ description: '`next_page_id` of the page before; empty for the first one.', example: '' })
  page_id?: string;

  @Integer({ description: 'Tasks on a page.', minimum: 1, maximum: 100, default: 30 })
  limit?: number;
}

/** A page of suggested tasks. */
@ApiSchema({ name: 'SuggestedTaskPage' })
export class SuggestedTaskPageDto {
  @ApiProperty({ type: [SuggestedTaskDto] })
  items: SuggestedTaskDto[];

  @NextPageId()
  next_page_id: string | null;
}

/** @throws InvalidInputError for a page id that is not of this list */
export function toPageRange({ page_id: pageId, limit = DEFAULT_LIMIT }: SearchSuggestedTasksQueryDto): {
  offset: number;
  limit: number;
} {
  return { offset: parsePageId('suggested-tasks', pageId, parseNumberCursor(MAX_OFFSET)) ?? 0, limit };
}

/** The suggested tasks page by page, as V1 clients of OpenHands read them. */
@ApiTags('Suggested tasks')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/git/suggested-tasks')
export class SuggestedTaskPagesController {
  constructor(private readonly suggestedTasks: SuggestedTasksService) {}

  @Get('search')
  @SearchSuggestedTasksOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchSuggestedTasksQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<SuggestedTaskPageDto> {
    const { offset, limit } = toPageRange(query);
    const { tasks, statuses } = await this.suggestedTasks.find(user.id, { limit: offset + limit + 1 });
    if (statuses.length > 0) {
      response.set('X-Provider-Status', providerStatusHeader(statuses));
    }
    const page = toPage('suggested-tasks', tasks.slice(offset), limit, () => String(offset + limit));
    return { items: page.items.map(toSuggestedTaskDto), next_page_id: page.nextPageId };
  }
}
