import { ApiProperty } from '@nestjs/swagger';
import { OrNull, Shown, ShownOrNull, Time, toWire } from '@slipway/api/openapi/responses.js';
import { isEmail } from 'class-validator';
import { PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { Choice, Flag, Identifier, MAX_EMAIL, Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { MEMBER_ROLES, type MemberRole, roleOf } from './access.js';
import type { Said } from './oidc/persons.service.js';
import { type User, USER_KINDS, type UserKind } from './user.repository.js';
import { SANDBOXES_OF_DISABLED, type SandboxesOfDisabled } from './users.service.js';

@NoOtherMembers()
export class CreateUserDto {
  @Text('Unique, compared in lower case. A person needs one, a service does not.', {
    example: 'ada@example.com',
    form: { format: 'email' },
    maxLength: MAX_EMAIL,
    // The domain may be a plain host name.
    rule: (text) =>
      isEmail(text, { require_tld: false }) ? null : 'Expected an email address such as ada@example.com.',
  })
  email?: string;

  @Text('Shown to people.', { nullable: true, example: 'Ada', maxLength: 200 }) name?: string | null;

  @Choice('Nobody signs in as a service: it has keys only.', {
    values: USER_KINDS,
    default: 'person',
    example: 'person',
  })
  kind?: UserKind;
}

export class SearchUsersQueryDto extends PageQuery('Users on a page.') {
  @Text('Only the user with this address.', { example: 'ada@example.com' }) email__eq?: string;
}

export class UserIdDto {
  @Identifier('Id of the user.', { required: true, example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  id: string;
}

@NoOtherMembers()
export class UpdateUserDto {
  @Flag('Whether the user is an administrator.', { required: true, example: true }) is_admin: boolean;
}

export class DisableUserQueryDto {
  @Choice(
    'What becomes of the sandboxes: `pause` ends what runs in them, which goes on after a resume; with `stop` it does not; `keep` leaves them alone.',
    { values: SANDBOXES_OF_DISABLED, default: 'pause', example: 'pause' },
  )
  sandboxes?: SandboxesOfDisabled;
}

export class RemoveUserQueryDto {
  @Identifier('Who gets the conversations and sandboxes.', {
    example: '1c7d0b63-7b10-4c3f-8e3b-2f7a1d2e3f40',
  })
  hand_over_to?: string | null;
}

export class UserDto {
  @ApiProperty({ format: 'uuid', example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' }) id: string;
  @ApiProperty({ example: 'ada@example.com' }) email: string;
  @OrNull('Ada') name: string | null;
  @ApiProperty({ example: false }) is_admin: boolean;
  @Time() created_at: Date;
  @ApiProperty({ enum: USER_KINDS, enumName: 'UserKind', example: 'person' }) kind: UserKind;

  @ShownOrNull('Since when nobody and nothing acts in the name of the user.', null, { format: 'date-time' })
  disabled_at: Date | null;

  @ApiProperty({ enum: MEMBER_ROLES, enumName: 'MemberRole', example: 'member' }) role: MemberRole;
}

export function toUserDto(user: User): Pick<UserDto, keyof UserDto> {
  const shown = toWire(user, 'id', 'email', 'name', 'isAdmin', 'createdAt', 'kind', 'disabledAt');
  return { ...shown, role: roleOf(user) };
}

class UserSignInDto {
  @Shown('The identity provider.', 'https://sso.example.com/realms/main') issuer: string;

  @ApiProperty({
    type: [String],
    nullable: true,
    maxItems: 50,
    description:
      'Groups of the last sign-in or token, cut to 200 characters; 50 at most, those that give a role first. Null where the provider left them out.',
    example: ['developers'],
  })
  groups: string[] | null;

  @ShownOrNull('What OIDC_ROLE_MAP gives for these groups; null for nothing.', 'member', {
    enum: ['viewer', 'member', 'admin', null],
  })
  role: string | null;

  @Shown('Whether OIDC_ROLE_MAP decides the role, so that nobody changes it here.', true)
  decides_role: boolean;

  @Time() last_seen_at: Date;
}

export class ListedUserDto extends UserDto {
  @ApiProperty({
    type: UserSignInDto,
    nullable: true,
    description: 'What the identity provider said last; null for who never signed in by it.',
  })
  sign_in: UserSignInDto | null;
}

export function toListedUserDto(user: User, said: Said | null): ListedUserDto {
  return { ...toUserDto(user), sign_in: said && toSignInDto(user, said) };
}

function toSignInDto({ kind }: User, { rolesAreMapped, ...said }: Said): UserSignInDto {
  const shown = toWire(said, 'issuer', 'groups', 'role', 'lastSeenAt');
  return { ...shown, decides_role: rolesAreMapped && kind === 'person' };
}

export class UserPageDto extends PageOf(ListedUserDto) {}
