import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { User } from '../user.entity.js';

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
