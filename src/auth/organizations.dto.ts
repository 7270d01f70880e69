import { ApiProperty } from '@nestjs/swagger';
import { OrNull, Shown } from '../common/openapi/responses.js';
import { Text } from '../common/validation/text-fields.js';
import type { AuthUser } from './auth.decorators.js';

const USER_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';
const PERMISSIONS = ['edit_org_settings', 'view_automations', 'manage_automations'];

export class OrganizationIdDto {
  @Text('Id of the organization: that of the user.', { required: true, example: USER_ID })
  organization_id: string;
}

export class OrganizationMemberIdDto extends OrganizationIdDto {
  @Text('Id of the user.', { required: true, example: USER_ID }) user_id: string;
}

export class CurrentApiKeyDto {
  @Shown('Id of the key: its first part, after `slw_`.', '4nKxq0Zt') id: string;
  @Shown('The space that the key is for.', USER_ID, { format: 'uuid' }) org_id: string;
  @ApiProperty({ format: 'uuid', description: 'Whose key it is.', example: USER_ID }) user_id: string;
  @ApiProperty({ enum: ['bearer'], example: 'bearer' }) auth_type: 'bearer';
}

/** Always empty: the service has no models of its own, and never shows a key of the settings. */
export class OwnModelKeyDto {
  @OrNull(null) key: null;
}

class OrganizationDto {
  @ApiProperty({ format: 'uuid', example: USER_ID }) id: string;
  @ApiProperty({ example: 'ada@example.com' }) name: string;
  @ApiProperty({ description: 'Always true: nobody shares a space.', example: true }) is_personal: boolean;
}

export class OrganizationPageDto {
  @ApiProperty({ type: [OrganizationDto] }) items: OrganizationDto[];
  @ApiProperty({ format: 'uuid', example: USER_ID }) current_org_id: string;
}

export class OrganizationMemberDto {
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ example: 'ada@example.com' }) email: string;
  @ApiProperty({ enum: ['owner'], example: 'owner' }) role: 'owner';
  @ApiProperty({ type: [String], example: PERMISSIONS }) permissions: string[];
}

export class ProviderConnectionsDto {
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) connections: [];
}

export function toCurrentApiKeyDto({ id, keyId }: AuthUser): CurrentApiKeyDto {
  return { id: keyId, org_id: id, user_id: id, auth_type: 'bearer' };
}

export function toOrganizationPageDto({ id, email }: AuthUser): OrganizationPageDto {
  return { items: [{ id, name: email, is_personal: true }], current_org_id: id };
}

export function toOrganizationMemberDto({ id, email }: AuthUser): OrganizationMemberDto {
  return { org_id: id, user_id: id, email, role: 'owner', permissions: PERMISSIONS };
}
