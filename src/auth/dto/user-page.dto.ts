import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/next-page-id.decorator.js';
import type { Page } from '../../common/pagination/page.js';
import type { User } from '../user.entity.js';
import { toUserDto, UserDto } from './user.dto.js';

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
