import { Body, Controller, Delete, Get, Header, Param, Patch, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../../auth/auth-user.js';
import { CurrentUser } from '../../auth/current-user.decorator.js';
import { SUCCESS, type SuccessDto } from '../../common/openapi/success.dto.js';
import {
  CountConversationsOperation,
  DeleteConversationOperation,
  ListConversationsOperation,
  SearchConversationsOperation,
  UpdateConversationOperation,
} from './app-conversations.operations.js';
import { AppConversationsService } from './app-conversations.service.js';
import { ConversationAnswers } from './conversation-answers.js';
import { ConversationRemovalService } from './conversation-removal.service.js';
import { ConversationsReader } from './conversations.reader.js';
import type { AppConversationPageDto } from './dto/app-conversation-page.dto.js';
import type { AppConversationDto } from './dto/app-conversation.dto.js';
import { ConversationFilterQueryDto, toConversationFilter } from './dto/conversation-filter-query.dto.js';
import { ConversationIdDto } from './dto/conversation-id.dto.js';
import { ListConversationsQueryDto } from './dto/list-conversations-query.dto.js';
import { SearchConversationsQueryDto } from './dto/search-conversations-query.dto.js';
import { UpdateConversationDto } from './dto/update-conversation.dto.js';

const DEFAULT_LIMIT = 100;

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations')
export class AppConversationsController {
  constructor(
    private readonly reader: ConversationsReader,
    private readonly service: AppConversationsService,
    private readonly removal: ConversationRemovalService,
    private readonly answers: ConversationAnswers,
  ) {}

  @Get('search')
  @SearchConversationsOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchConversationsQueryDto,
  ): Promise<AppConversationPageDto> {
    const { items, nextPageId } = await this.reader.search(
      user.id,
      toConversationFilter(query, query.include_sub_conversations ?? false),
      { limit: query.limit ?? DEFAULT_LIMIT, pageId: query.page_id },
    );
    return { items: items.map((row) => this.answers.conversation(row)), next_page_id: nextPageId };
  }

  @Get('count')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @CountConversationsOperation()
  async count(@CurrentUser() user: AuthUser, @Query() query: ConversationFilterQueryDto): Promise<number> {
    return this.reader.count(user.id, toConversationFilter(query, true));
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
    const rows = await this.service.findAll(user.id, query.ids);
    return rows.map((row) => row && this.answers.conversation(row));
  }

  @Patch(':id')
  @UpdateConversationOperation()
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<AppConversationDto> {
    return this.answers.conversation(await this.service.update(user.id, id, body));
  }

  @Delete(':id')
  @DeleteConversationOperation()
  async remove(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.removal.remove(user.id, id);
    return SUCCESS;
  }
}
