import { Body, Controller, Get, Header, Headers, HttpCode, Post, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { idempotencyKey } from '../../idempotency/idempotency.service.js';
import { StartTaskQueries } from '../start-task.queries.js';
import { ConversationStarter } from '../start/conversation-starter.js';
import { StartStream } from '../start/start-stream.js';
import { ConversationPresenter } from './conversation.presenter.js';
import { StartConversationDto } from './dto/start-conversation.dto.js';
import {
  SearchStartTasksQueryDto,
  type StartTaskDto,
  StartTaskFilterQueryDto,
  StartTaskIdsQueryDto,
  type StartTaskPageDto,
  toStartTaskFilter,
} from './dto/start-task.dto.js';
import {
  CountStartTasksOperation,
  GetStartTasksOperation,
  SearchStartTasksOperation,
  StartConversationOperation,
  StreamStartOperation,
} from './start-tasks.openapi.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations')
export class StartTasksController {
  constructor(
    private readonly starter: ConversationStarter,
    private readonly queries: StartTaskQueries,
    private readonly stream: StartStream,
    private readonly presenter: ConversationPresenter,
  ) {}

  @Post()
  @HttpCode(200)
  @StartConversationOperation()
  async start(
    @CurrentUser() user: AuthUser,
    @Body() body: StartConversationDto,
    @Headers('idempotency-key') key: string | undefined,
  ): Promise<StartTaskDto> {
    return this.presenter.startTask(await this.starter.startFor(user.id, body, idempotencyKey(key)));
  }

  @Post('stream-start')
  @StreamStartOperation()
  async streamStart(
    @CurrentUser() user: AuthUser,
    @Body() body: StartConversationDto,
    @Headers('idempotency-key') key: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    await this.stream.send(await this.starter.startFor(user.id, body, idempotencyKey(key)), response);
  }

  @Get('start-tasks/search')
  @SearchStartTasksOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchStartTasksQueryDto,
  ): Promise<StartTaskPageDto> {
    const { items, nextPageId } = await this.queries.search(user.id, toStartTaskFilter(query), {
      order: query.sort_order ?? 'CREATED_AT_DESC',
      limit: query.limit ?? DEFAULT_LIMIT,
      pageId: query.page_id,
    });
    return { items: items.map((row) => this.presenter.startTask(row)), next_page_id: nextPageId };
  }

  @Get('start-tasks/count')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @CountStartTasksOperation()
  async count(@CurrentUser() user: AuthUser, @Query() query: StartTaskFilterQueryDto): Promise<number> {
    return this.queries.count(user.id, toStartTaskFilter(query));
  }

  @Get('start-tasks')
  @GetStartTasksOperation()
  async findAll(
    @CurrentUser() user: AuthUser,
    @Query() { ids }: StartTaskIdsQueryDto,
  ): Promise<(StartTaskDto | null)[]> {
    const rows = await this.queries.batch(user.id, ids);
    return rows.map((row) => row && this.presenter.startTask(row));
  }
}
