import { ApiProperty } from '@nestjs/swagger';
import { OrNull, Time, toWire } from '../common/openapi/responses.js';
import { isEmail } from 'class-validator';
import { PageOf, PageQuery } from '../common/pagination/page.dto.js';
import { Identifier, MAX_EMAIL, Text } from '../common/validation/field-decorators.js';
import { NoOtherMembers } from '../common/validation/unknown-members.js';
import type { User } from './user.repository.js';

@NoOtherMembers()
export class CreateUserDto {
  @Text('Unique, compared in lower case.', {
    required: true,
    example: 'ada@example.com',
    form: { format: 'email' },
    maxLength: MAX_EMAIL,
    // The domain may be a plain host name.
    rule: (text) =>
      isEmail(text, { require_tld: false }) ? null : 'Expected an email address such as ada@example.com.',
  })
  email: string;

  @Text('Shown to people.', { nullable: true, example: 'Ada', maxLength: 200 }) name?: string | null;
}

export class SearchUsersQueryDto extends PageQuery('Users on a page.') {
  @Text('Only the user with this address.', { example: 'ada@example.com' }) email__eq?: string;
}

export class UserIdDto {
  @Identifier('Id of the user.', { required: true, example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  id: string;
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
}

export function toUserDto(user: User): UserDto {
  return toWire(user, 'id', 'email', 'name', 'isAdmin', 'createdAt');
}

export class UserPageDto extends PageOf(UserDto) {}
