import { ApiProperty, PickType } from '@nestjs/swagger';
import { ShownOrNull } from '../../common/openapi/responses.js';
import { Text } from '../../common/validation/field-decorators.js';
import { UserDto } from '../users.dto.js';
import type { BrowserSession } from './browser-sessions.js';

const EXAMPLE_KEY = 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe';
const EXAMPLE_CODE = 'jTq0mJ0cV4mXQm2y8b1u3bZ6r9d5fQw7eTn2sLxK4aU';
const NO_CODE = 'Expected the 43 letters, digits, - and _ of a code.';

export class SignInWithKeyDto {
  @Text('An API key.', { required: true, example: EXAMPLE_KEY, maxLength: 512, secret: true }) key: string;
}

export class ExchangeCodeDto {
  @Text('From the link that the service printed when it was started.', {
    required: true,
    example: EXAMPLE_CODE,
    maxLength: 43,
    pattern: { regex: /^[\w-]{43}$/, expected: NO_CODE },
  })
  code: string;
}

class SessionUserDto extends PickType(UserDto, ['id', 'email', 'name', 'is_admin']) {}

export class SessionDto {
  @ApiProperty({ type: SessionUserDto, nullable: true, description: 'Null: nobody is signed in.' })
  user: SessionUserDto | null;

  @ShownOrNull(
    'For the header `X-CSRF-Token` of changes by this session; null without one.',
    'b0Zk3m3R9c1w8Xq5hT2yV7uJ4aN6sLdPfGtEoIiQrYk',
  )
  csrf_token: string | null;
}

export function toSessionDto(session: BrowserSession | null): SessionDto {
  if (session === null) {
    return { user: null, csrf_token: null };
  }
  const { id, email, name, isAdmin } = session.user;
  return { user: { id, email, name, is_admin: isAdmin }, csrf_token: session.csrfToken };
}
