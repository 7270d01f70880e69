import { ApiProperty, PickType } from '@nestjs/swagger';
import { Shown, ShownOrNull, Time, TimeOrNull, toWire, USER_ID } from '@slipway/api/openapi/responses.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import {
  Choice,
  ChoiceList,
  Identifier,
  Instant,
  Text,
  TextList,
} from '@slipway/api/validation/field-decorators.js';
import { SCOPES, type Scope } from '../common/scopes.js';
import { type ApiKey, BOOTSTRAP_KEY_NAME } from './api-key.repository.js';
import type { IssuedKey } from './api-keys.service.js';
import { KEY_REPOSITORY } from './key-repositories.js';

const MAX_REPOSITORIES = 100;

export class ApiKeyIdDto {
  @Text('Id of the key: its first part, after `slw_`.', { required: true, example: '4nKxq0Zt' }) id: string;
}

export function ScopesShown(description: string, example: readonly Scope[] = SCOPES): PropertyDecorator {
  return ApiProperty({ enum: SCOPES, enumName: 'Scope', isArray: true, description, example });
}

export function KeyRepositoriesShown(): PropertyDecorator {
  return Shown(
    'Of which repositories it sees and moves conversations, and nothing else; null: it is for all that its user has.',
    ['github:octo/app', 'gitlab:group/*'],
    { type: [String], nullable: true },
  );
}

export class ApiKeyDto {
  @ApiProperty({ description: 'The first part of the key, after `slw_`.', example: '4nKxq0Zt' }) id: string;
  @ApiProperty({ example: 'ci' }) name: string;
  @Time() created_at: Date;
  @TimeOrNull(null) expires_at: Date | null;

  @ShownOrNull('Up to a minute old.', '2026-11-21T09:31:00.000Z', { format: 'date-time' })
  last_used_at: Date | null;

  @TimeOrNull(null) revoked_at: Date | null;
  @TimeOrNull(null) not_before: Date | null;
  @Shown('Whether a device got it by its code.', false) of_device: boolean;

  @ScopesShown('What the key may do.', ['read', 'run']) scopes: Scope[];

  @KeyRepositoriesShown() repositories: string[] | null;
}

export function toApiKeyDto(key: ApiKey): ApiKeyDto {
  const { id, name, ...times } = toWire(
    key,
    'id',
    'name',
    'createdAt',
    'expiresAt',
    'lastUsedAt',
    'revokedAt',
    'notBefore',
    'ofDevice',
  );
  return { id, name, ...times, scopes: key.scopes ?? [...SCOPES], repositories: key.repositories };
}

function nameProblem(name: string): string | null {
  if (name.length > 100 || name.trim() === '') {
    return 'Expected 1 to 100 characters.';
  }
  return name === BOOTSTRAP_KEY_NAME ? 'This name is kept for the key from BOOTSTRAP_API_KEY.' : null;
}

@NoOtherMembers()
export class CreateApiKeyDto {
  @Text('What the key is for; 1 to 100 characters.', {
    required: true,
    example: 'ci',
    form: { minLength: 1, maxLength: 100, pattern: String.raw`\S` },
    rule: nameProblem,
  })
  name: string;

  @Instant('When the key ends, with yours at the latest; without it the key lasts until it is revoked.', {
    nullable: true,
    example: '2030-01-31T12:00:00Z',
  })
  expires_at?: Date | null;

  @Instant('From when on the key is valid; without it at once.', {
    nullable: true,
    example: '2030-01-01T00:00:00Z',
  })
  not_before?: Date | null;

  @ChoiceList(
    'What the key may do, within what the key of the request may; none includes another. Without it: all that that one may, but for `admin`.',
    { values: SCOPES, nullable: true, example: ['read'], form: { minItems: 1 } },
  )
  scopes?: Scope[] | null;

  @TextList(
    'Makes a key that sees and moves conversations of these repositories only, and can do nothing else: `github:owner/name`, or `gitlab:group/*` for all below a group. Names are kept in lower case, as hosts compare them. Without it: as the key of the request.',
    {
      nullable: true,
      example: ['github:octo/app', 'gitlab:group/*'],
      form: { minItems: 1, maxItems: MAX_REPOSITORIES },
      itemLength: 600,
      pattern: {
        regex: KEY_REPOSITORY,
        expected: 'Expected a repository such as github:owner/name, or gitlab:group/* for all below a group.',
      },
    },
  )
  repositories?: string[] | null;

  @Identifier('Owner of the key; administrators only. Without it: the caller.', {
    nullable: true,
    example: USER_ID,
  })
  user_id?: string | null;
}

/** The only response that holds the key itself. */
export class IssuedApiKeyDto extends PickType(ApiKeyDto, [
  'name',
  'created_at',
  'expires_at',
  'not_before',
  'scopes',
  'repositories',
]) {
  @ApiProperty({ example: '4nKxq0Zt' }) id: string;

  @Shown(
    'The key. It is shown here and never again.',
    'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe',
  )
  key: string;
}

export function toIssuedApiKeyDto({ key, record }: IssuedKey): IssuedApiKeyDto {
  const { last_used_at: _used, revoked_at: _revoked, of_device: _device, ...issued } = toApiKeyDto(record);
  return { key, ...issued };
}

export class KeyOwnerQueryDto {
  @Identifier('Whose keys; administrators only. Without it: the caller.', { example: USER_ID })
  user_id?: string;
}

export class RevokeApiKeyQueryDto {
  @Choice(
    'Also pauses the automations, webhooks and endpoints, unlinks the sign-ins, ends the notifications of browsers, and revokes the keys, that were made with it.',
    {
      values: ['pause'],
      example: 'pause',
    },
  )
  made?: 'pause';
}
