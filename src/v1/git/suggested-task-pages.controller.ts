import { Controller, Get, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { toPage } from '../../common/pagination/page.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import { toSuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';
import {
  SearchSuggestedTasksQueryDto,
  type SuggestedTaskPageDto,
  toPageRange,
} from './suggested-task-pages.dto.js';
import { SearchSuggestedTasksOperation } from './suggested-task-pages.openapi.js';

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
    const page = toPage(tasks.slice(offset), limit, () => String(offset + limit));
    return { items: page.items.map(toSuggestedTaskDto), next_page_id: page.nextPageId };
  }
}
