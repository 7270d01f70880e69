import { Body, Controller, Delete, Get, Param, Patch, Query, Res } from '@nestjs/common';
import { ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { UsersService } from '../../../auth/users.service.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { listWithNulls, succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import {
  CurrentOrganization,
  INSTALLATION_ORGANIZATION_ID,
} from '../../../organizations/installation-organization.js';
import { ConversationOwner, NeedsAccess } from '../../events/conversation-access.guard.js';
import { ConversationIdDto, UNKNOWN_CONVERSATION } from '../../events/events.dto.js';
import { ConversationQueries } from '../conversation.queries.js';
import type { ConversationFilter, ConversationRow } from '../conversation-row.js';
import { ConversationExport } from '../conversation-export.js';
import { ConversationsService } from '../conversations.service.js';
import { ConversationPresenter } from './conversation.presenter.js';
import { DownloadSender } from './download.sender.js';
import {
  AppConversationDto,
  AppConversationPageDto,
  ConversationFilterQueryDto,
  ListConversationsQueryDto,
  SearchConversationsQueryDto,
  toConversationFilter,
  UpdateConversationDto,
} from './dto/conversation.dto.js';

@ApiTags('Conversations')
@Controller('api/v1/app-conversations')
export class AppConversationsController {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationsService,
    private readonly exports: ConversationExport,
    private readonly presenter: ConversationPresenter,
    private readonly downloads: DownloadSender,
    private readonly users: UsersService,
  ) {}

  @Get('search')
  @ApiRoute('search_app_conversations', 'List conversations', {
    description:
      'Yours, and those that others share with the organization, newest first; without those that are part of another one unless they are asked for.',
    answer: { type: AppConversationPageDto, description: 'A page of conversations' },
  })
  async search(
    @CurrentUser() user: AuthUser,
    @CurrentOrganization() organization: string,
    @Query() query: SearchConversationsQueryDto,
  ): Promise<AppConversationPageDto> {
    const { limit, page_id: pageId, include_sub_conversations: withSubConversations = false } = query;
    const filter = within(organization, toConversationFilter(query, withSubConversations));
    const page = await this.queries.search(user, filter, { limit, pageId });
    const owners = await this.ownersOf(user, page.items);
    return toPageDto(page, (row) => this.presenter.conversation(row, owners));
  }

  @Get('count')
  @ApiRoute('count_app_conversations', 'Count conversations', {
    description: 'Those that are part of another one count as well.',
    answer: { schema: { type: 'integer', example: 12 }, description: 'How many there are' },
  })
  async count(
    @CurrentUser() user: AuthUser,
    @CurrentOrganization() organization: string,
    @Query() query: ConversationFilterQueryDto,
  ): Promise<number> {
    return this.queries.count(user, within(organization, toConversationFilter(query, true)));
  }

  @Get()
  @ApiRoute('list_app_conversations', 'List conversations, or look some up', {
    description:
      'With `ids` a list in their order, with null for each that is unknown. Without, the same as ' +
      '`/api/v1/app-conversations/search`.',
    answer: {
      schema: { oneOf: [{ $ref: getSchemaPath(AppConversationPageDto) }, listWithNulls(AppConversationDto)] },
      description: 'A page of conversations, or one element for each id',
    },
  })
  async list(
    @CurrentUser() user: AuthUser,
    @CurrentOrganization() organization: string,
    @Query() query: ListConversationsQueryDto,
  ): Promise<AppConversationPageDto | (AppConversationDto | null)[]> {
    if (query.ids === undefined) {
      return this.search(user, organization, query);
    }
    const rows = await this.conversations.findAll(user, query.ids);
    const owners = await this.ownersOf(user, rows);
    return rows.map((row) => row && this.presenter.conversation(row, owners));
  }

  @Patch(':id')
  @NeedsAccess('own')
  @ApiRoute('update_app_conversation', 'Change what is noted about a conversation', {
    description:
      'Title, repository, branch, provider, who reads it. A title of yours is not replaced any more.',
    answer: { type: AppConversationDto, description: 'The conversation as it is now' },
    problems: [UNKNOWN_CONVERSATION],
    invalid: 'title',
  })
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<AppConversationDto> {
    const row = await this.conversations.update(user, id, body);
    return this.presenter.conversation(row, new Map([[user.id, user.email]]));
  }

  @Delete(':id')
  @NeedsAccess('own')
  @ApiRoute('delete_app_conversation', 'Delete a conversation', {
    description:
      'With its events, and with its sandbox when no other conversation uses that; whatever state they are in. One ' +
      'that is being started is not started any more. Conversations that were part of it stay, on their own.',
    answer: { type: SuccessDto, description: 'Deleted; the sandbox goes in the background' },
    problems: [UNKNOWN_CONVERSATION],
  })
  async remove(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: ConversationIdDto,
  ): Promise<SuccessDto> {
    return succeeded(this.conversations.remove(userId, id));
  }

  @Get(':id/download')
  @NeedsAccess('read')
  @ApiRoute('export_conversation', 'Download a conversation', {
    description:
      'A zip archive with `meta.json` and each stored event in a file of its own (`event_000000_….json`), also when the sandbox is gone.',
    answer: {
      description: 'The archive',
      content: { 'application/zip': { schema: { type: 'string', format: 'binary' }, example: 'PK…' } },
    },
    problems: [UNKNOWN_CONVERSATION],
  })
  async download(
    @CurrentUser() user: AuthUser,
    @ConversationOwner() ownerId: string,
    @Param() { id }: ConversationIdDto,
    @Res() response: Response,
  ): Promise<void> {
    const headers = {
      'Content-Type': 'application/zip',
      'Content-Disposition': 'attachment; filename="conversation.zip"',
    };
    await this.downloads.send(user.id, response, async () => ({
      headers,
      content: await this.exports.archive(ownerId, id),
    }));
  }

  /** The addresses of the owners. */
  private async ownersOf(
    { id, email }: AuthUser,
    rows: readonly (ConversationRow | null)[],
  ): Promise<Map<string, string>> {
    const others = rows.flatMap((row) => (row === null || row.user_id === id ? [] : [row.user_id]));
    return (await this.users.addresses(others)).set(id, email);
  }
}

/** Nothing is shared in a personal organization. */
function within(organization: string, filter: ConversationFilter): ConversationFilter {
  return organization === INSTALLATION_ORGANIZATION_ID ? filter : { ...filter, owner: 'me' };
}
