import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiRoute, documented } from '../common/openapi/api-route.js';
import { OrNull, Shown, USER_ID } from '../common/openapi/responses.js';
import { SCOPES, type Scope } from '../common/scopes.js';
import { Text } from '../common/validation/field-decorators.js';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { OwnOrganizationGuard } from './auth.guard.js';

const PERMISSIONS = ['edit_org_settings', 'view_automations', 'manage_automations'];

class OrganizationIdDto {
  @Text('Id of the organization: that of the user.', { required: true, example: USER_ID })
  organization_id: string;
}

class OrganizationMemberIdDto extends OrganizationIdDto {
  @Text('Id of the user.', { required: true, example: USER_ID }) user_id: string;
}

class CurrentApiKeyDto {
  @Shown('Id of the key: its first part, after `slw_`.', '4nKxq0Zt') id: string;
  @Shown('The space that the key is for.', USER_ID, { format: 'uuid' }) org_id: string;
  @ApiProperty({ format: 'uuid', description: 'Whose key it is.', example: USER_ID }) user_id: string;
  @ApiProperty({ enum: ['bearer'], example: 'bearer' }) auth_type: 'bearer';

  @ApiProperty({
    enum: SCOPES,
    enumName: 'Scope',
    isArray: true,
    description: 'What it may do.',
    example: SCOPES,
  })
  scopes: Scope[];
}

/** Always empty: the service has no models of its own, and never shows a key of the settings. */
class OwnModelKeyDto {
  @OrNull(null) key: null;
}

class OrganizationDto {
  @ApiProperty({ format: 'uuid', example: USER_ID }) id: string;
  @ApiProperty({ example: 'ada@example.com' }) name: string;
  @ApiProperty({ description: 'Always true: nobody shares a space.', example: true }) is_personal: boolean;
}

class OrganizationPageDto {
  @ApiProperty({ type: [OrganizationDto] }) items: OrganizationDto[];
  @ApiProperty({ format: 'uuid', example: USER_ID }) current_org_id: string;
}

class OrganizationMemberDto {
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ example: 'ada@example.com' }) email: string;
  @ApiProperty({ enum: ['owner'], example: 'owner' }) role: 'owner';
  @ApiProperty({ type: [String], example: PERMISSIONS }) permissions: string[];
}

class ProviderConnectionsDto {
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) connections: [];
}

function toOrganizationMemberDto({ id, email }: AuthUser): OrganizationMemberDto {
  return { org_id: id, user_id: id, email, role: 'owner', permissions: PERMISSIONS };
}

const UNKNOWN = documented(404, 'There is no organization with this id.', 'Unknown, or not yours');

/** Serves web applications that know organizations: each user owns one space of their own. */
@ApiTags('API keys')
@Controller('api')
export class OrganizationsController {
  @Get('keys/current')
  @ApiRoute('get_current_api_key', 'Show whose key this is', {
    description: 'Web applications ask for it to find out whether they are connected.',
    answer: { type: CurrentApiKeyDto, description: 'The key of the request' },
  })
  currentKey(@CurrentUser() { id, keyId, scopes }: AuthUser): CurrentApiKeyDto {
    return { id: keyId, org_id: id, user_id: id, auth_type: 'bearer', scopes: [...scopes] };
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
  list(@CurrentUser() { id, email }: AuthUser): OrganizationPageDto {
    return { items: [{ id, name: email, is_personal: true }], current_org_id: id };
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
      throw new DomainError('not_found', 'There is no member with this id.');
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
