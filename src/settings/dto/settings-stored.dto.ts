import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ProviderTokenWarningDto } from '../../git-providers/dto/git-providers-stored.dto.js';
import type { ProviderTokenWarning } from '../../git-providers/tokens/provider-token-input.js';

/** Answer of `POST /api/settings`. */
@ApiSchema({ name: 'SettingsStored' })
export class SettingsStoredDto {
  @ApiProperty({ example: 'Settings stored' })
  message: string;

  @ApiProperty({
    type: [ProviderTokenWarningDto],
    required: false,
    description: 'Tokens that were stored unverified; absent when there are none.',
  })
  warnings?: ProviderTokenWarningDto[];
}

export function toSettingsStoredDto(warnings: readonly ProviderTokenWarning[]): SettingsStoredDto {
  return { message: 'Settings stored', ...(warnings.length > 0 && { warnings: [...warnings] }) };
}
