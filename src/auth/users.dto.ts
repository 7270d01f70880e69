import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../common/openapi/responses.js';
import type { Page } from '../common/pagination/page.js';
import { Integer } from '../common/validation/number-fields.js';
import { Email, Identifier, Text } from '../common/validation/text-fields.js';
import type { User } from './user.repository.js';

/** Body of `POST /api/v1/users`. */
@ApiSchema({ name: 'CreateUser' })
export class CreateUserDto {
  @Email({ required: true, description: 'Unique, compared in lower case.', example: 'ada@example.com' })
  email: string;

  @Text({ nullable: true, description: 'Shown to people.', example: 'Ada', maxLength: 200 })
  name?: string | null;
}

/** Query of `GET /api/v1/users`. */
export class SearchUsersQueryDto {
  @Text({ description: 'Only the user with this address.', example: 'ada@example.com' })
  email__eq?: string;

  @Integer({ description: 'Users on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;

  @Text({ description: '`next_page_id` of the page before; empty for the first one.', example: '' })
  page_id?: string;
}

/** Path of `/api/v1/users/{id}`. */
export class UserIdDto {
  @Identifier({
    required: true,
    description: 'Id of the user.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  id: string;
}

/** A user. */
@ApiSchema({ name: 'User' })
export class UserDto {
  @ApiProperty({ format: 'uuid', example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  id: string;

  @ApiProperty({ example: 'ada@example.com' })
  email: string;

  @ApiProperty({ type: String, nullable: true, example: 'Ada' })
  name: string | null;

  @ApiProperty({ example: false })
  is_admin: boolean;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;
}

export function toUserDto(user: User): UserDto {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    is_admin: user.isAdmin,
    created_at: user.createdAt.toISOString(),
  };
}

/** A page of users. */
@ApiSchema({ name: 'UserPage' })
export class UserPageDto {
  @ApiProperty({ type: [UserDto] })
  items: UserDto[];

  @NextPageId()
  next_page_id: string | null;
}

export function toUserPageDto(page: Page<User>): UserPageDto {
  return { items: page.items.map(toUserDto), next_page_id: page.nextPageId };
}
