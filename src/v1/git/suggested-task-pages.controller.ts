import { Controller, Get, Query, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { PageOf, PageQuery, toPageDto } from '../../common/pagination/page.dto.js';
import { parseNumberCursor, parsePageId, toPage } from '../../common/pagination/page.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import {
  PROVIDER_STATUS_HEADER,
  SUGGESTED_TASKS_PROBLEMS,
  SuggestedTaskDto,
  toSuggestedTaskDto,
} from '../../suggested-tasks/suggested-tasks.dto.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';

/** A page id holds how many tasks come before the page, at most these. */
const MAX_OFFSET = 9999;

class SearchSuggestedTasksQueryDto extends PageQuery('Tasks on a page.', 30) {}

class SuggestedTaskPageDto extends PageOf(SuggestedTaskDto) {}

/** The suggested tasks page by page, as V1 clients of OpenHands read them. */
@ApiTags('Suggested tasks')
@Controller('api/v1/git/suggested-tasks')
export class SuggestedTaskPagesController {
  constructor(private readonly suggestedTasks: SuggestedTasksService) {}

  @Get('search')
  @ApiRoute('search_suggested_tasks', 'Suggested tasks by pages', {
    description: 'The tasks of GET /api/user/suggested-tasks, in the same order.',
    answer: {
      type: SuggestedTaskPageDto,
      description: 'A page of tasks',
      headers: { 'X-Provider-Status': PROVIDER_STATUS_HEADER },
    },
    problems: SUGGESTED_TASKS_PROBLEMS,
  })
  async search(
    @UserId() userId: string,
    @Query() { page_id: pageId, limit }: SearchSuggestedTasksQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<SuggestedTaskPageDto> {
    const offset = parsePageId('suggested-tasks', pageId, parseNumberCursor(MAX_OFFSET)) ?? 0;
    const { tasks, statuses } = await this.suggestedTasks.find(userId, { limit: offset + limit + 1 });
    if (statuses.length > 0) {
      response.set('X-Provider-Status', providerStatusHeader(statuses));
    }
    const page = toPage('suggested-tasks', tasks.slice(offset), limit, () => String(offset + limit));
    return toPageDto(page, toSuggestedTaskDto);
  }
}
