import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { Page } from '../../common/pagination/page.js';
import type { User } from '../user.entity.js';
import { toUserDto, UserDto } from './user.dto.js';

/** A page of users. */
@ApiSchema({ name: 'UserPage' })
export class UserPageDto {
  @ApiProperty({ type: [UserDto] })
  items: UserDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  })
  next_page_id: string | null;
}

export function toUserPageDto(page: Page<User>): UserPageDto {
  return { items: page.items.map(toUserDto), next_page_id: page.nextPageId };
}
