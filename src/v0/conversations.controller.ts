import { Body, Controller, Delete, Get, Header, Param, Patch, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../auth/auth.decorators.js';
import { ApiRoute, badInput, thrown } from '../common/openapi/api-route.js';
import { ConversationPresenter } from '../v1/app-conversations/api/conversation.presenter.js';
import {
  CHANGES_OF_CONVERSATIONS,
  ConversationIdDto,
  UpdateConversationDto,
} from '../v1/app-conversations/api/dto/conversation.dto.js';
import { ConversationQueries } from '../v1/app-conversations/conversation.queries.js';
import { ConversationsService } from '../v1/app-conversations/conversations.service.js';
import { unknownConversation } from '../v1/events/events.service.js';
import {
  ConversationInfoDto,
  ConversationInfoPageDto,
  ConversationRuntimeDto,
  isWanted,
  SearchConversationInfosQueryDto,
  toConversationInfoDto,
} from './conversations.dto.js';

const JSON_TYPE = 'application/json; charset=utf-8';
const UNKNOWN = thrown(unknownConversation(), 'Unknown conversation, or not yours');

/** V1's conversations in the format of the older web application. */
@ApiTags('Conversations')
@Controller('api/conversations')
export class ConversationInfosController {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationsService,
    private readonly presenter: ConversationPresenter,
  ) {}

  @Get()
  @ApiRoute(
    'search_conversations_api_conversations_get',
    'Conversations, as the older web application lists them',
    {
      description: 'The newest first; the same as GET /api/v1/app-conversations/search shows.',
      answer: { type: ConversationInfoPageDto, description: 'A page of conversations' },
    },
  )
  async search(
    @UserId() userId: string,
    @Query() query: SearchConversationInfosQueryDto,
  ): Promise<ConversationInfoPageDto> {
    const { items, nextPageId } = await this.queries.search(
      userId,
      { withSubConversations: false },
      { limit: query.limit, pageId: query.page_id },
    );
    const infos = items.map((row) => toConversationInfoDto(this.presenter.conversation(row)));
    return { results: infos.filter((info) => isWanted(info, query)), next_page_id: nextPageId };
  }

  @Get(':id')
  @ApiRoute(
    'get_conversation_api_conversations__conversation_id__get',
    'One conversation, as the older web application shows it',
    { answer: { type: ConversationInfoDto, description: 'The conversation' }, problems: [UNKNOWN] },
  )
  async get(@UserId() userId: string, @Param() { id }: ConversationIdDto): Promise<ConversationInfoDto> {
    return toConversationInfoDto(this.presenter.conversation(await this.conversations.find(userId, id)));
  }

  @Get(':id/config')
  @ApiRoute(
    'get_remote_runtime_config_api_conversations__conversation_id__config_get',
    'Where a conversation runs',
    { answer: { type: ConversationRuntimeDto, description: 'Its sandbox' }, problems: [UNKNOWN] },
  )
  async config(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
  ): Promise<ConversationRuntimeDto> {
    const { id: session_id, sandbox_id: runtime_id } = this.presenter.conversation(
      await this.conversations.find(userId, id),
    );
    return { runtime_id, session_id };
  }

  @Patch(':id')
  @Header('Content-Type', JSON_TYPE)
  @ApiRoute('update_conversation_api_conversations__conversation_id__patch', 'Rename a conversation', {
    description: 'Takes what PATCH /api/v1/app-conversations/{id} takes.',
    answer: { schema: { type: 'boolean' }, description: 'Renamed', example: true },
    examples: CHANGES_OF_CONVERSATIONS,
    problems: [UNKNOWN],
    invalid: badInput('body.title', 'Expected a title that is not blank.'),
  })
  async rename(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<boolean> {
    await this.conversations.update(userId, id, body);
    return true;
  }

  @Delete(':id')
  @Header('Content-Type', JSON_TYPE)
  @ApiRoute('delete_conversation_api_conversations__conversation_id__delete', 'Remove a conversation', {
    answer: { schema: { type: 'boolean' }, description: 'Removed', example: true },
    problems: [UNKNOWN],
  })
  async remove(@UserId() userId: string, @Param() { id }: ConversationIdDto): Promise<boolean> {
    await this.conversations.remove(userId, id);
    return true;
  }
}
