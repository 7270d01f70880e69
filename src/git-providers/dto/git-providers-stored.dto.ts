import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
} from '../git-provider.types.js';
import type { ProviderTokenWarning } from '../tokens/provider-token-input.js';

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
