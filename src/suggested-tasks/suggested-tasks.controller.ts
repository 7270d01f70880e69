import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiHeader, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import { answerJson } from '@slipway/api/requests/response-headers.js';
import { TASK_TYPES } from './collect-candidates.js';
import { providerStatusHeader } from './provider-status.js';
import {
  PROVIDER_STATUS_HEADER,
  SUGGESTED_TASKS_PROBLEMS,
  SuggestedTaskDto,
  SuggestedTasksQueryDto,
  toSuggestedTaskDto,
} from './suggested-tasks.dto.js';
import { SuggestedTasksService } from './suggested-tasks.service.js';

const DESCRIPTION =
  'Open work across the most recently pushed repositories of every provider with a stored token: merge conflicts, ' +
  'failing checks, unresolved review comments, assigned issues, open pull requests, and repositories without ' +
  'instructions for agents. Providers that fail do not hide the others; X-Provider-Status says how each took part.';
const ETAG = {
  description: 'Strong; send it back in If-None-Match.',
  schema: { type: 'string' as const },
  example: '"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"',
};
const HEADERS = { ETag: ETAG, 'X-Provider-Status': PROVIDER_STATUS_HEADER };

@ApiTags('Suggested tasks')
@Controller('api/user/suggested-tasks')
export class SuggestedTasksController {
  constructor(private readonly service: SuggestedTasksService) {}

  @Get()
  @ApiHeader({
    name: 'If-None-Match',
    description: 'The ETag of an earlier answer: 304 while nothing has changed.',
    schema: { type: 'string', maxLength: 1_024 },
    example: ETAG.example,
  })
  @ApiResponse({
    status: 304,
    description: 'Nothing has changed since the answer with this ETag',
    headers: HEADERS,
  })
  @ApiRoute('get_suggested_tasks_', 'Suggested tasks of the user', {
    description: DESCRIPTION,
    answer: { type: [SuggestedTaskDto], description: 'Successful Response', headers: HEADERS },
    problems: SUGGESTED_TASKS_PROBLEMS,
    invalid: badInput('query.task_types', `Expected a comma list of: ${TASK_TYPES.join(', ')}.`, 'enum'),
  })
  async find(
    @CurrentUser() { id: userId, repositories }: AuthUser,
    @Query() { task_types: taskTypes, providers, limit }: SuggestedTasksQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const selection = { taskTypes, providers, limit, repositories };
    const { tasks, statuses } = await this.service.find(userId, selection);
    if (statuses.length > 0) {
      // An empty list is a missing header (RFC 9651 section 3.1).
      response.setHeader('X-Provider-Status', providerStatusHeader(statuses));
    }
    answerJson(request, response, JSON.stringify(tasks.map(toSuggestedTaskDto)));
  }
}
