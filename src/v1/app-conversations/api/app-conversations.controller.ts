import { Body, Controller, Delete, Get, Header, Param, Patch, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { SUCCESS, type SuccessDto } from '../../../common/openapi/responses.js';
import { ConversationExportService } from '../conversation-export.service.js';
import { ConversationQueries } from '../conversation.queries.js';
import { ConversationsService } from '../conversations.service.js';
import {
  CountConversationsOperation,
  DeleteConversationOperation,
  DownloadOperation,
  ListConversationsOperation,
  SearchConversationsOperation,
  UpdateConversationOperation,
} from './app-conversations.openapi.js';
import { ConversationPresenter } from './conversation.presenter.js';
import {
  type AppConversationDto,
  type AppConversationPageDto,
  ConversationFilterQueryDto,
  ConversationIdDto,
  ListConversationsQueryDto,
  SearchConversationsQueryDto,
  toConversationFilter,
  UpdateConversationDto,
} from './dto/conversation.dto.js';
import { DownloadSender } from './download.sender.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations')
export class AppConversationsController {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationsService,
    private readonly exports: ConversationExportService,
    private readonly presenter: ConversationPresenter,
    private readonly downloads: DownloadSender,
  ) {}

  @Get('search')
  @SearchConversationsOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchConversationsQueryDto,
  ): Promise<AppConversationPageDto> {
    const { items, nextPageId } = await this.queries.search(
      user.id,
      toConversationFilter(query, query.include_sub_conversations ?? false),
      { limit: query.limit ?? DEFAULT_LIMIT, pageId: query.page_id },
    );
    return { items: items.map((row) => this.presenter.conversation(row)), next_page_id: nextPageId };
  }

  @Get('count')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @CountConversationsOperation()
  async count(@CurrentUser() user: AuthUser, @Query() query: ConversationFilterQueryDto): Promise<number> {
    return this.queries.count(user.id, toConversationFilter(query, true));
  }

  @Get()
  @ListConversationsOperation()
  async list(
    @CurrentUser() user: AuthUser,
    @Query() query: ListConversationsQueryDto,
  ): Promise<AppConversationPageDto | (AppConversationDto | null)[]> {
    if (query.ids === undefined) {
      return this.search(user, query);
    }
    const rows = await this.conversations.findAll(user.id, query.ids);
    return rows.map((row) => row && this.presenter.conversation(row));
  }

  @Patch(':id')
  @UpdateConversationOperation()
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<AppConversationDto> {
    return this.presenter.conversation(await this.conversations.update(user.id, id, body));
  }

  @Delete(':id')
  @DeleteConversationOperation()
  async remove(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.conversations.remove(user.id, id);
    return SUCCESS;
  }

  @Get(':id/download')
  @DownloadOperation()
  async download(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Res() response: Response,
  ): Promise<void> {
    const headers = {
      'Content-Type': 'application/zip',
      'Content-Disposition': 'attachment; filename="conversation.zip"',
    };
    await this.downloads.send(user.id, response, async () => ({
      headers,
      content: await this.exports.pack(user.id, id),
    }));
  }
}
