import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
  type ProviderUser,
} from './git-provider.js';

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
