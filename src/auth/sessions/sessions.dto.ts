import { ApiProperty } from '@nestjs/swagger';
import { Text } from '../../common/validation/text-fields.js';
import type { SignedInUser } from './sessions.service.js';

const EXAMPLE_KEY = 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe';
export const EXAMPLE_CODE = 'jTq0mJ0cV4mXQm2y8b1u3bZ6r9d5fQw7eTn2sLxK4aU';
const NO_CODE = 'Expected the 43 letters, digits, - and _ of a code.';

export class SignInWithKeyDto {
  @Text({ required: true, description: 'An API key.', example: EXAMPLE_KEY, maxLength: 512, secret: true })
  key: string;
}

export class ExchangeCodeDto {
  @Text({
    required: true,
    description: 'From the link that the service printed when it was started.',
    example: EXAMPLE_CODE,
    maxLength: 43,
    pattern: { regex: /^[\w-]{43}$/, expected: NO_CODE },
  })
  code: string;
}

export class SessionUserDto {
  @ApiProperty({ format: 'uuid', example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  id: string;

  @ApiProperty({ example: 'ada@example.com' })
  email: string;

  @ApiProperty({ type: String, nullable: true, example: 'Ada' })
  name: string | null;

  @ApiProperty({ example: false })
  is_admin: boolean;
}

export class SessionDto {
  @ApiProperty({ type: SessionUserDto, nullable: true, description: 'Null: nobody is signed in.' })
  user: SessionUserDto | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'For the header `X-CSRF-Token` of changes by this session; null without one.',
    example: 'b0Zk3m3R9c1w8Xq5hT2yV7uJ4aN6sLdPfGtEoIiQrYk',
  })
  csrf_token: string | null;
}

export function toSessionDto(user: SignedInUser, csrfToken: string): SessionDto {
  const { id, email, name, isAdmin } = user;
  return { user: { id, email, name, is_admin: isAdmin }, csrf_token: csrfToken };
}
