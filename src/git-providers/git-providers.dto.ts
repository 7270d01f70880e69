import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { type McpConfigDto, McpConfigField } from '../mcp-config/mcp-config.dto.js';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
  type ProviderUser,
} from './git-provider.js';
import type { ProviderTokenInputs, ProviderTokenWarning } from './tokens/plan-token-changes.js';
import { ProviderTokenMap } from './tokens/provider-token.dto.js';

/** Body of `POST /api/add-git-providers`. */
@ApiSchema({ name: 'AddGitProviders' })
export class AddGitProvidersDto {
  @McpConfigField()
  mcp_config?: McpConfigDto | null;

  @ProviderTokenMap()
  provider_tokens?: ProviderTokenInputs;
}

/** A token that was stored although its provider gave no verdict on it. */
@ApiSchema({ name: 'ProviderTokenWarning' })
export class ProviderTokenWarningDto {
  @ApiProperty({ enum: PROVIDER_TYPES, enumName: 'ProviderType', example: 'gitlab' })
  provider: ProviderType;

  @ApiProperty({ enum: PROVIDER_ERROR_CODES, enumName: 'ProviderErrorCode', example: 'unavailable' })
  code: ProviderErrorCode;

  @ApiProperty({
    example: 'The gitlab token was stored but not verified: the provider could not be reached.',
  })
  detail: string;
}

/** Answer of `POST /api/add-git-providers`. */
@ApiSchema({ name: 'GitProvidersStored' })
export class GitProvidersStoredDto {
  @ApiProperty({ example: 'Git providers stored' })
  message: string;

  @ApiProperty({
    type: [ProviderTokenWarningDto],
    required: false,
    description: 'Tokens that were stored unverified; absent when there are none.',
  })
  warnings?: ProviderTokenWarningDto[];
}

export function toGitProvidersStoredDto(warnings: readonly ProviderTokenWarning[]): GitProvidersStoredDto {
  return { message: 'Git providers stored', ...(warnings.length > 0 && { warnings: [...warnings] }) };
}

/** Answer of `POST /api/unset-provider-tokens`. */
@ApiSchema({ name: 'GitProvidersUnset' })
export class GitProvidersUnsetDto {
  @ApiProperty({ example: 'Unset Git provider tokens' })
  message: string;
}

export function toGitProvidersUnsetDto(): GitProvidersUnsetDto {
  return { message: 'Unset Git provider tokens' };
}

/** The user's account at a git provider. */
@ApiSchema({ name: 'GitUser' })
export class GitUserDto {
  @ApiProperty({ description: 'As the provider writes it.', example: '583231' })
  id: string;

  @ApiProperty({ example: 'octocat' })
  login: string;

  @ApiProperty({ example: 'https://avatars.example.com/u/583231' })
  avatar_url: string;

  @ApiProperty({ type: String, nullable: true, example: 'Example Ltd' })
  company: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'The Octocat' })
  name: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'octocat@example.com' })
  email: string | null;
}

export function toGitUserDto({ id, login, avatarUrl, company, name, email }: ProviderUser): GitUserDto {
  return { id, login, avatar_url: avatarUrl, company, name, email };
}
