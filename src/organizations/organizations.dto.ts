import { ApiProperty } from '@nestjs/swagger';
import { MEMBER_ROLES, type MemberRole } from '../auth/access.js';
import { KeyRepositoriesShown, ScopesShown } from '../auth/api-keys.dto.js';
import { OrNull, Shown, USER_ID } from '@slipway/api/openapi/responses.js';
import type { Scope } from '../common/scopes.js';
import { Choice, Identifier, Integer, Text } from '@slipway/api/validation/field-decorators.js';
import { INSTALLATION_ORGANIZATION_ID } from './installation-organization.js';
import { type Member, rankOf } from './members.service.js';

/** Words of the peer; what is not among them is not asked for by its clients. */
const PERMISSIONS: Record<MemberRole, readonly string[]> = {
  viewer: ['view_org_settings', 'view_automations'],
  // Clients keep the user's own models at `/api/organizations/{id}/profiles`, and ask for this one.
  member: ['manage_automations', 'edit_org_settings'],
  admin: ['view_org_conversations'],
  owner: ['change_user_role:member', 'change_user_role:admin', 'change_user_role:owner'],
};

/** A role has the permissions of those below it, too. */
export function permissionsOf(role: MemberRole): string[] {
  return MEMBER_ROLES.slice(0, MEMBER_ROLES.indexOf(role) + 1).flatMap((each) => [...PERMISSIONS[each]]);
}

export class OrganizationIdDto {
  @Text('Id of the organization: that of the installation, or of the user for the personal one.', {
    required: true,
    example: INSTALLATION_ORGANIZATION_ID,
  })
  organization_id: string;
}

export class OrganizationMemberIdDto extends OrganizationIdDto {
  @Text('Id of the user.', { required: true, example: USER_ID }) user_id: string;
}

export class ChangedMemberIdDto extends OrganizationIdDto {
  @Identifier('Id of the user.', { required: true, example: USER_ID }) user_id: string;
}

export class UpdateMemberDto {
  @Choice('The role from now on.', {
    required: true,
    values: MEMBER_ROLES,
    enumName: 'MemberRole',
    example: 'member',
  })
  role: MemberRole;
}

export class MembersQueryDto {
  @Text('`next_page_id` of the page before: how many members are before it.', {
    example: '10',
    rule: (text) => (/^\d{0,6}$/.test(text) ? null : 'Expected next_page_id of the page before.'),
  })
  page_id?: string;
  @Integer('Members on a page.', { minimum: 1, maximum: 100, default: 10 }) limit = 10;
  @Text('Part of the address; case does not count.', { example: 'ada', maxLength: 255 }) email?: string;
}

export class CurrentApiKeyDto {
  @Shown('Id of the key: its first part, after `slw_`.', '4nKxq0Zt') id: string;
  @Shown('The organization that the request picks.', INSTALLATION_ORGANIZATION_ID, { format: 'uuid' })
  org_id: string;
  @ApiProperty({ format: 'uuid', description: 'Whose key it is.', example: USER_ID }) user_id: string;
  @ApiProperty({ enum: ['bearer'], example: 'bearer' }) auth_type: 'bearer';

  @ScopesShown('What it may do.') scopes: Scope[];

  @KeyRepositoriesShown() repositories: string[] | null;
}

/** Always empty: the service has no models of its own, and never shows a key of the settings. */
export class OwnModelKeyDto {
  @OrNull(null) key: null;
}

export class OrganizationDto {
  @ApiProperty({ format: 'uuid', example: INSTALLATION_ORGANIZATION_ID }) id: string;
  @Shown('Where the service is, or the address of the user.', 'slipway.example.com') name: string;
  @Shown('Whether it is the own space of the user.', false) is_personal: boolean;
}

export class OrganizationPageDto {
  @ApiProperty({ type: [OrganizationDto] }) items: OrganizationDto[];
  @Shown('That of the installation unless `X-Org-Id` picks the personal one.', INSTALLATION_ORGANIZATION_ID, {
    format: 'uuid',
  })
  current_org_id: string;
}

class MemberDto {
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ example: 'ada@example.com' }) email: string;
  @ApiProperty({ enum: MEMBER_ROLES, enumName: 'MemberRole', example: 'member' }) role: MemberRole;
}

export class OrganizationMemberDto extends MemberDto {
  @ApiProperty({ format: 'uuid', example: INSTALLATION_ORGANIZATION_ID }) org_id: string;
  @ApiProperty({ type: [String], example: permissionsOf('member') }) permissions: string[];
}

export class ListedMemberDto extends MemberDto {
  @ApiProperty({ type: 'integer', example: 3 }) role_id: number;
  @Shown('1 is the highest.', 3, { type: 'integer' }) role_rank: number;
  @Shown('A user who is disabled is inactive.', 'active', { enum: ['active', 'inactive'] })
  status: 'active' | 'inactive';
}

export class MemberPageDto {
  @ApiProperty({ type: [ListedMemberDto] }) items: ListedMemberDto[];
  @ApiProperty({ type: 'integer', example: 1 }) current_page: number;
  @ApiProperty({ type: 'integer', example: 10 }) per_page: number;
  @OrNull('10') next_page_id: string | null;
}

export function toOrganizationMemberDto(orgId: string, { id, email, role }: Member): OrganizationMemberDto {
  return { org_id: orgId, user_id: id, email, role, permissions: permissionsOf(role) };
}

export function toListedMemberDto({ id, email, role, isActive }: Member): ListedMemberDto {
  const rank = rankOf(role);
  return {
    user_id: id,
    email,
    role,
    role_id: rank,
    role_rank: rank,
    status: isActive ? 'active' : 'inactive',
  };
}
