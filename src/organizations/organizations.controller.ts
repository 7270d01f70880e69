import {
  All,
  Body,
  Controller,
  Delete,
  Get,
  Param,
  Patch,
  Post,
  Query,
  Req,
  UseGuards,
} from '@nestjs/common';
import { ApiExcludeController, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { AdministratorsOnly } from '../auth/auth.guard.js';
import { lastAdministrator, roleOfMap } from '../auth/user.repository.js';
import { DomainError, unknownId } from '../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { ServiceAddress } from '../config/service-address.js';
import { CurrentOrganization, INSTALLATION_ORGANIZATION_ID } from './installation-organization.js';
import { MembersService } from './members.service.js';
import { InstallationOrganizationGuard, OrganizationGuard } from './organization.guard.js';
import {
  ChangedMemberIdDto,
  CurrentApiKeyDto,
  ListedMemberDto,
  MemberPageDto,
  MembersQueryDto,
  OrganizationIdDto,
  OrganizationMemberDto,
  OrganizationMemberIdDto,
  OrganizationPageDto,
  OwnModelKeyDto,
  toListedMemberDto,
  toOrganizationMemberDto,
  UpdateMemberDto,
} from './organizations.dto.js';

const UNKNOWN = thrown(unknownId('organization'), 'Unknown, or not yours');
const UNKNOWN_MEMBER = thrown(unknownId('member'), 'Unknown organization or member');
const UNKNOWN_USER = thrown(unknownId('user'), 'Unknown organization or member');

/** What web applications for organizations ask first. */
@ApiTags('API keys')
@Controller('api')
export class OrganizationsController {
  constructor(private readonly address: ServiceAddress) {}

  @Get('keys/current')
  @ApiRoute('get_current_api_key', 'Show whose key this is', {
    description: 'Web applications ask for it to find out whether they are connected.',
    answer: { type: CurrentApiKeyDto, description: 'The key of the request' },
    problems: [UNKNOWN],
  })
  currentKey(
    @CurrentUser() { id, keyId, scopes, repositories }: AuthUser,
    @CurrentOrganization() organization: string,
  ): CurrentApiKeyDto {
    const limits = { scopes: [...scopes], repositories: repositories && [...repositories] };
    return { id: keyId, org_id: organization, user_id: id, auth_type: 'bearer', ...limits };
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
    description:
      "There are two: that of the installation, which all users are members of, and the user's own space. The header `X-Org-Id` picks one for a request.",
    answer: { type: OrganizationPageDto, description: 'Both organizations' },
    problems: [UNKNOWN],
  })
  list(
    @CurrentUser() { id, email }: AuthUser,
    @CurrentOrganization() organization: string,
  ): OrganizationPageDto {
    const { host } = new URL(this.address.publicUrl);
    return {
      items: [
        { id: INSTALLATION_ORGANIZATION_ID, name: host, is_personal: false },
        { id, name: email, is_personal: true },
      ],
      current_org_id: organization,
    };
  }
}

/** Members of an organization, and what they may do. */
@ApiTags('Users')
@UseGuards(OrganizationGuard)
@Controller('api/organizations/:organization_id')
export class OrganizationMembersController {
  constructor(private readonly members: MembersService) {}

  @Get('me')
  @ApiRoute('get_organization_member', 'What the user may do in the organization', {
    description: 'In the personal one all that its owner may do.',
    answer: { type: OrganizationMemberDto, description: 'The user as a member' },
    problems: [UNKNOWN],
  })
  async me(
    @CurrentUser() user: AuthUser,
    @Param() { organization_id: id }: OrganizationIdDto,
  ): Promise<OrganizationMemberDto> {
    const organization = idOf(id);
    return toOrganizationMemberDto(organization, await this.members.get(organization, user, user.id));
  }

  @Get('members')
  @ApiRoute('list_organization_members', 'List the members of the organization', {
    description: 'In the order of their addresses; of a personal one its user.',
    answer: { type: MemberPageDto, description: 'A page of members' },
    problems: [UNKNOWN],
  })
  async list(
    @CurrentUser() user: AuthUser,
    @Param() { organization_id: id }: OrganizationIdDto,
    @Query() { page_id: pageId, limit, email }: MembersQueryDto,
  ): Promise<MemberPageDto> {
    const offset = Number(pageId ?? 0);
    const members = await this.members.list(idOf(id), user, { email, offset, limit: limit + 1 });
    return {
      items: members.slice(0, limit).map(toListedMemberDto),
      current_page: Math.floor(offset / limit) + 1,
      per_page: limit,
      next_page_id: members.length > limit ? String(offset + limit) : null,
    };
  }

  @Get('members/:user_id')
  @ApiRoute('get_organization_member_by_id', 'Who a member is', {
    description: 'Web applications ask whose an automation is.',
    answer: { type: OrganizationMemberDto, description: 'The member' },
    problems: [UNKNOWN_MEMBER],
  })
  async member(
    @CurrentUser() user: AuthUser,
    @Param() { organization_id: id, user_id: memberId }: OrganizationMemberIdDto,
  ): Promise<OrganizationMemberDto> {
    const organization = idOf(id);
    const member = await this.members.get(
      organization,
      user,
      parseHexId(memberId) ?? INSTALLATION_ORGANIZATION_ID,
    );
    return toOrganizationMemberDto(organization, member);
  }

  @Patch('members/:user_id')
  @UseGuards(InstallationOrganizationGuard)
  @AdministratorsOnly()
  @ApiRoute('update_organization_member', 'Give a member another role', {
    description:
      'Owners only, and not of themselves; where no owner is enabled, administrators. `viewer` reads what is shared, `member` runs and shares, `admin` administers, `owner` changes members.',
    answer: { type: ListedMemberDto, description: 'The member' },
    problems: [UNKNOWN_USER, thrown(roleOfMap(), 'The role of a person of the identity provider')],
  })
  async update(
    @CurrentUser() { id: by }: AuthUser,
    @Param() { user_id: id }: ChangedMemberIdDto,
    @Body() { role }: UpdateMemberDto,
  ): Promise<ListedMemberDto> {
    return toListedMemberDto(await this.members.setRole(id, by, role));
  }

  @Delete('members/:user_id')
  @UseGuards(InstallationOrganizationGuard)
  @AdministratorsOnly()
  @ApiRoute('delete_organization_member', 'Remove a member', {
    description:
      'Owners only, and not themselves; where no owner is enabled, administrators. All users are members, so this is `DELETE /api/v1/users/{id}`: conversations and sandboxes are kept REMOVED_USER_RETENTION_SECONDS.',
    answer: { type: SuccessDto, description: 'Removed' },
    problems: [UNKNOWN_USER, thrown(lastAdministrator(), 'Nobody could get in any more')],
  })
  async remove(
    @CurrentUser() { id: by }: AuthUser,
    @Param() { user_id: id }: ChangedMemberIdDto,
  ): Promise<SuccessDto> {
    return succeeded(this.members.remove(id, by));
  }
}

/** What of the peer's document is refused, instead of looking unknown. */
const NOT_OFFERED = [
  'llm',
  'app',
  'members/invite/accept',
  ':organization_id/members/count',
  ':organization_id/members/financial',
  ':organization_id/members/invite{/*rest}',
  ':organization_id/switch',
  ':organization_id/git-claims{/*rest}',
  ':organization_id/budgets{/*rest}',
  ':organization_id/conversations/usage-stats',
  ':organization_id/conversations/user-usage',
  ':organization_id/conversations/export',
  ':organization_id/provider-connections',
  ':organization_id',
];

@ApiExcludeController()
@Controller('api/organizations')
export class OrganizationRefusalsController {
  @Post()
  refuseNew(): never {
    throw notOffered('POST /api/organizations');
  }

  @All(NOT_OFFERED)
  refuse(@Req() { method, path }: Request): never {
    throw notOffered(`${method} ${path}`);
  }
}

function notOffered(operation: string): DomainError {
  const members = 'There is one organization of all users, whose members are the users of GET /api/v1/users.';
  return new DomainError('not_offered', `${operation} is not offered here. ${members}`);
}

/** The guard knows it. */
function idOf(organizationId: string): string {
  return parseHexId(organizationId) ?? organizationId;
}
