import { createHash } from 'node:crypto';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import type { AuthUser } from '../auth/auth-user.js';
import { CurrentUser } from '../auth/current-user.decorator.js';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { SUGGESTED_TASKS_EXAMPLE } from './dto/suggested-tasks.example.js';
import { SuggestedTaskDto, toSuggestedTaskDto } from './dto/suggested-task.dto.js';
import { SuggestedTasksQueryDto } from './dto/suggested-tasks-query.dto.js';
import { providerStatusHeader } from './provider-status.js';
import { SuggestedTasksService } from './suggested-tasks.service.js';

const STATUS_HEADER = {
  'X-Provider-Status': {
    description: 'How each provider took part (structured list, RFC 9651).',
    schema: { type: 'string' as const },
    example: 'github;status=ok;count=12, gitlab;status=error;code=rate_limited;retry_after=41',
  },
  ETag: { description: 'Strong; send it back in If-None-Match.', schema: { type: 'string' as const } },
};

@ApiTags('Suggested tasks')
@ApiSecurity('APIKeyHeader')
@Controller('api/user/suggested-tasks')
export class SuggestedTasksController {
  constructor(private readonly service: SuggestedTasksService) {}

  @Get()
  @ApiOperation({
    operationId: 'get_suggested_tasks_api_user_suggested_tasks_get',
    summary: 'Suggested tasks of the user',
    description:
      'Open work across the most recently pushed repositories of every provider with a stored token: merge conflicts, ' +
      'failing checks, unresolved review comments, assigned issues, open pull requests, and repositories without ' +
      'instructions for agents. Providers that fail do not hide the others; X-Provider-Status says how each took part.',
  })
  @ApiOkResponse({
    type: [SuggestedTaskDto],
    description: 'Successful Response',
    headers: STATUS_HEADER,
    example: SUGGESTED_TASKS_EXAMPLE,
  })
  @ApiResponse({ status: 304, description: 'Nothing changed since the answer with this ETag' })
  @ApiProblems({ status: 401, code: 'no_git_provider', detail: 'No providers set.' }, 422, 502, 504)
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
    response.set({
      'Cache-Control': 'private, no-cache',
      'Content-Type': 'application/json; charset=utf-8',
      ETag: `"${createHash('sha256').update(body).digest('base64url')}"`,
      // An empty list is expressed by leaving the header out (RFC 9651 section 3.1).
      ...(statuses.length > 0 && { 'X-Provider-Status': providerStatusHeader(statuses) }),
    });
    if (request.fresh) {
      response.status(304).end();
      return;
    }
    response.end(body);
  }
}
