import { Controller, Get, Param, Post, Query, UseGuards } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiTags } from '@nestjs/swagger';
import { AdministratorsOnly } from '../../../auth/auth.guard.js';
import { UsersService } from '../../../auth/users.service.js';
import { DomainError, unknownId } from '../../../common/errors/domain-error.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { InstallationOrganizationGuard } from '../../../organizations/organization.guard.js';
import { OrganizationIdDto } from '../../../organizations/organizations.dto.js';
import { ConversationOwner, NeedsAccess } from '../../events/conversation-access.guard.js';
import { unknownConversation } from '../../events/events.service.js';
import { ConversationActionsService, notRunning } from '../conversation-actions.service.js';
import { OrganizationConversationQueries } from '../organization-conversation.queries.js';
import { ConversationPresenter } from './conversation.presenter.js';
import {
  OrganizationConversationIdDto,
  OrganizationConversationPageDto,
  OrganizationConversationsQueryDto,
  OrganizationStatsDto,
  toOrganizationConversationDto,
  toOrganizationSearch,
} from './dto/organization-conversation.dto.js';

const UNKNOWN = thrown(unknownId('organization'), 'Not the organization of the installation');

/** What administrators see and end of all users. They go on with a conversation by its own routes. */
@ApiTags('Conversations')
@UseGuards(InstallationOrganizationGuard)
@AdministratorsOnly()
@Controller('api/organizations/:organization_id/conversations')
export class OrganizationConversationsController {
  constructor(
    private readonly queries: OrganizationConversationQueries,
    private readonly actions: ConversationActionsService,
    private readonly presenter: ConversationPresenter,
    private readonly users: UsersService,
  ) {}

  @Get()
  @ApiRoute('list_organization_conversations', 'List the conversations of all users', {
    description: 'Administrators only.',
    answer: { type: OrganizationConversationPageDto, description: 'A page of conversations' },
    problems: [UNKNOWN],
    invalid: 'sort_by',
  })
  async list(
    @Param() _path: OrganizationIdDto,
    @Query() query: OrganizationConversationsQueryDto,
  ): Promise<OrganizationConversationPageDto> {
    const { search = '', page, per_page: limit } = query;
    const owners = search === '' ? [] : await this.users.idsByAddress(search);
    const { rows, total } = await this.queries.search(toOrganizationSearch(query, owners));
    const addresses = await this.users.addresses(rows.map(({ user_id: id }) => id));
    return {
      items: rows.map((row) =>
        toOrganizationConversationDto(this.presenter.conversation(row, addresses), row.user_id),
      ),
      total_items: total,
      page,
      per_page: limit,
      total_pages: Math.ceil(total / limit),
    };
  }

  @Get('stats')
  @ApiRoute('get_organization_conversation_stats', 'How much is going on', {
    description: 'Administrators only. Of the conversations of all users.',
    answer: { type: OrganizationStatsDto, description: 'Numbers of now' },
    problems: [UNKNOWN],
  })
  async stats(@Param() _path: OrganizationIdDto): Promise<OrganizationStatsDto> {
    return this.queries.stats();
  }

  @Post(':conversation_id/stop')
  @NeedsAccess('steer')
  @ApiRoute('stop_organization_conversation', 'Stop a conversation of any user', {
    description:
      'Administrators only. Pauses the agent and its sandbox, in which the owner can go on. The audit names who did it.',
    answer: { type: SuccessDto, description: 'Both are paused' },
    problems: [
      thrown(unknownConversation(), 'Unknown organization or conversation'),
      thrown(notRunning(), 'It does not run'),
    ],
  })
  async stop(
    @ConversationOwner() ownerId: string,
    @Param() { conversation_id: id }: OrganizationConversationIdDto,
  ): Promise<SuccessDto> {
    return succeeded(this.actions.stopWithSandbox(ownerId, id));
  }

  @Get(':conversation_id')
  @ApiExcludeEndpoint()
  refuse(): never {
    throw new DomainError('not_offered', 'Ask for it at GET /api/v1/app-conversations?ids=.');
  }
}
