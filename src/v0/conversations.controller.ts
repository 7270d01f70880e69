import { Body, Controller, Delete, Get, Header, Param, Patch, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { ConversationPresenter } from '../v1/app-conversations/api/conversation.presenter.js';
import {
  ConversationIdDto,
  UpdateConversationDto,
} from '../v1/app-conversations/api/dto/conversation.dto.js';
import { ConversationQueries, type ConversationRow } from '../v1/app-conversations/conversation.queries.js';
import { ConversationsService } from '../v1/app-conversations/conversations.service.js';
import { unknownConversation } from '../v1/events/events.service.js';
import {
  type ConversationInfoDto,
  type ConversationInfoPageDto,
  type ConversationRuntimeDto,
  isWanted,
  SearchConversationInfosQueryDto,
  toConversationInfoDto,
} from './conversations.dto.js';
import {
  GetConversationInfoOperation,
  GetConversationRuntimeOperation,
  RemoveConversationOperation,
  RenameConversationOperation,
  SearchConversationInfosOperation,
} from './conversations.openapi.js';

const DEFAULT_LIMIT = 20;
const JSON_TYPE = 'application/json; charset=utf-8';

/** The conversations of V1, in the form that the older web application reads them. */
@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/conversations')
export class ConversationInfosController {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationsService,
    private readonly presenter: ConversationPresenter,
  ) {}

  @Get()
  @SearchConversationInfosOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchConversationInfosQueryDto,
  ): Promise<ConversationInfoPageDto> {
    const { items, nextPageId } = await this.queries.search(
      user.id,
      { withSubConversations: false },
      { limit: query.limit ?? DEFAULT_LIMIT, pageId: query.page_id },
    );
    const infos = items.map((row) => toConversationInfoDto(this.presenter.conversation(row)));
    return { results: infos.filter((info) => isWanted(info, query)), next_page_id: nextPageId };
  }

  @Get(':id')
  @GetConversationInfoOperation()
  async get(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<ConversationInfoDto> {
    return toConversationInfoDto(this.presenter.conversation(await this.find(user.id, id)));
  }

  @Get(':id/config')
  @GetConversationRuntimeOperation()
  async config(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
  ): Promise<ConversationRuntimeDto> {
    const { id: sessionId, sandbox_id: runtimeId } = this.presenter.conversation(
      await this.find(user.id, id),
    );
    return { runtime_id: runtimeId, session_id: sessionId };
  }

  @Patch(':id')
  @Header('Content-Type', JSON_TYPE)
  @RenameConversationOperation()
  async rename(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<boolean> {
    await this.conversations.update(user.id, id, body);
    return true;
  }

  @Delete(':id')
  @Header('Content-Type', JSON_TYPE)
  @RemoveConversationOperation()
  async remove(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<boolean> {
    await this.conversations.remove(user.id, id);
    return true;
  }

  /** @throws DomainError not_found */
  private async find(userId: string, id: string): Promise<ConversationRow> {
    const [row] = await this.conversations.findAll(userId, [id]);
    if (!row) {
      throw unknownConversation();
    }
    return row;
  }
}
