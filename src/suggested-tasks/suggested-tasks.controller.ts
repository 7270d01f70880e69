import { hash } from 'node:crypto';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { ifNoneMatch } from '../common/requests/response-headers.js';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { toSuggestedTaskDto, SuggestedTasksQueryDto } from './suggested-tasks.dto.js';
import { providerStatusHeader } from './provider-status.js';
import { SuggestedTasksOperation } from './suggested-tasks.openapi.js';
import { SuggestedTasksService } from './suggested-tasks.service.js';

@ApiTags('Suggested tasks')
@ApiSecurity('APIKeyHeader')
@Controller('api/user/suggested-tasks')
export class SuggestedTasksController {
  constructor(private readonly service: SuggestedTasksService) {}

  @Get()
  @SuggestedTasksOperation()
  async find(
    @CurrentUser() user: AuthUser,
    @Query() query: SuggestedTasksQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { tasks, statuses } = await this.service.find(user.id, {
      taskTypes: query.task_types,
      providers: query.providers,
      limit: query.limit,
    });
    const body = JSON.stringify(tasks.map(toSuggestedTaskDto));
    const etag = `"${hash('sha256', body, 'base64url')}"`;
    response.setHeader('Cache-Control', 'private, no-cache');
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
    response.setHeader('ETag', etag);
    if (statuses.length > 0) {
      // An empty list is expressed by leaving the header out (RFC 9651 section 3.1).
      response.setHeader('X-Provider-Status', providerStatusHeader(statuses));
    }
    if (ifNoneMatch(request.headers['if-none-match'], etag)) {
      response.status(304).end();
      return;
    }
    response.end(body);
  }
}
