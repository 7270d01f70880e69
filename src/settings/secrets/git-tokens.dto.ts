import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ProviderTokenWarningDto } from '../../git-providers/git-providers.dto.js';
import type {
  ProviderTokenInputs,
  ProviderTokenWarning,
} from '../../git-providers/tokens/plan-token-changes.js';
import { ProviderTokenMap } from '../../git-providers/tokens/provider-token.dto.js';
import { type McpConfigDto, McpConfigField } from '../mcp/mcp-config.dto.js';

/** Body of `POST /api/add-git-providers`. */
@ApiSchema({ name: 'AddGitProviders' })
export class AddGitProvidersDto {
  @McpConfigField()
  mcp_config?: McpConfigDto | null;

  @ProviderTokenMap()
  provider_tokens?: ProviderTokenInputs;
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
