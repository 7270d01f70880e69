import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiRoute, documented } from '../common/openapi/api-route.js';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { OwnOrganizationGuard } from './auth.guard.js';
import {
  CurrentApiKeyDto,
  OrganizationIdDto,
  OrganizationMemberDto,
  OrganizationMemberIdDto,
  OrganizationPageDto,
  OwnModelKeyDto,
  ProviderConnectionsDto,
  toCurrentApiKeyDto,
  toOrganizationMemberDto,
  toOrganizationPageDto,
} from './organizations.dto.js';

const UNKNOWN = documented(404, 'There is no organization with this id.', 'Unknown, or not yours');

/** For organizations' web applications each user is the owner of a space of their own. */
@ApiTags('API keys')
@Controller('api')
export class OrganizationsController {
  @Get('keys/current')
  @ApiRoute('get_current_api_key', 'Show whose key this is', {
    description: 'Web applications ask for it to find out whether they are connected.',
    answer: { type: CurrentApiKeyDto, description: 'The key of the request' },
  })
  currentKey(@CurrentUser() user: AuthUser): CurrentApiKeyDto {
    return toCurrentApiKeyDto(user);
  }

  @Get('keys/llm/byor')
  @ApiRoute('get_own_model_key', 'Show the key for models that the service provides', {
    description: 'None: it provides no models. The command line asks for it when it logs in.',
    answer: { type: OwnModelKeyDto, description: 'No key' },
  })
  ownModelKey(): OwnModelKeyDto {
    return { key: null };
  }

  @Get('organizations')
  @ApiRoute('list_organizations', "List the user's organizations", {
    description: "There is one: the user's own space.",
    answer: { type: OrganizationPageDto, description: 'The one organization' },
  })
  list(@CurrentUser() user: AuthUser): OrganizationPageDto {
    return toOrganizationPageDto(user);
  }

  @Get('organizations/:organization_id/me')
  @UseGuards(OwnOrganizationGuard)
  @ApiRoute('get_organization_member', 'What the user may do in the organization', {
    description: 'All that its owner may do.',
    answer: { type: OrganizationMemberDto, description: 'Its owner' },
    problems: [UNKNOWN],
  })
  member(@CurrentUser() user: AuthUser, @Param() _path: OrganizationIdDto): OrganizationMemberDto {
    return toOrganizationMemberDto(user);
  }

  @Get('organizations/:organization_id/members/:user_id')
  @UseGuards(OwnOrganizationGuard)
  @ApiRoute('get_organization_member_by_id', 'Who a member is', {
    description: 'The user alone. Web applications ask whose an automation is.',
    answer: { type: OrganizationMemberDto, description: 'The member' },
    problems: [documented(404, 'There is no member with this id.', 'Unknown, or not yours')],
  })
  memberById(
    @CurrentUser() user: AuthUser,
    @Param() { user_id: id }: OrganizationMemberIdDto,
  ): OrganizationMemberDto {
    if (id !== user.id) {
      throw new DomainError('not_found', 'not_found', 'There is no member with this id.');
    }
    return toOrganizationMemberDto(user);
  }

  @Get('organizations/:organization_id/provider-connections')
  @UseGuards(OwnOrganizationGuard)
  @ApiRoute('list_provider_connections', 'List connections to providers that the organization shares', {
    description: 'None: keys and tokens are in the settings of each user.',
    answer: { type: ProviderConnectionsDto, description: 'None' },
    problems: [UNKNOWN],
  })
  connections(@Param() _path: OrganizationIdDto): ProviderConnectionsDto {
    return { connections: [] };
  }
}
