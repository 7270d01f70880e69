import { ApiProperty } from '@nestjs/swagger';
import { OrNull } from '../common/openapi/responses.js';
import { thrown } from '../common/openapi/api-route.js';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
  type ProviderUser,
} from './git-provider.js';
import { invalidGitToken } from './git-provider-problem.js';

export class ProviderTokenWarningDto {
  @ApiProperty({ enum: PROVIDER_TYPES, enumName: 'ProviderType', example: 'gitlab' }) provider: ProviderType;

  @ApiProperty({ enum: PROVIDER_ERROR_CODES, enumName: 'ProviderErrorCode', example: 'unavailable' })
  code: ProviderErrorCode;

  @ApiProperty({
    example: 'The gitlab token was stored but not verified: the provider could not be reached.',
  })
  detail: string;
}

export const INVALID_TOKEN = thrown(
  invalidGitToken('github'),
  'No valid API key, or a token that its provider rejects',
);

export class GitUserDto {
  @ApiProperty({ description: 'As the provider writes it.', example: '583231' }) id: string;
  @ApiProperty({ example: 'octocat' }) login: string;
  @ApiProperty({ example: 'https://avatars.example.com/u/583231' }) avatar_url: string;
  @OrNull('Example Ltd') company: string | null;
  @OrNull('The Octocat') name: string | null;
  @OrNull('octocat@example.com') email: string | null;
}

export function toGitUserDto({ id, login, avatarUrl, company, name, email }: ProviderUser): GitUserDto {
  return { id, login, avatar_url: avatarUrl, company, name, email };
}
