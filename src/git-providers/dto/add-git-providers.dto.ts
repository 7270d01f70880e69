import { ApiSchema } from '@nestjs/swagger';
import { McpConfigField } from '../../mcp-config/dto/mcp-config-field.decorator.js';
import type { McpConfigDto } from '../../mcp-config/dto/mcp-config.dto.js';
import type { ProviderTokenInputs } from '../tokens/provider-token-input.js';
import { ProviderTokenMap } from '../tokens/dto/provider-token-map.decorator.js';

/** Body of `POST /api/add-git-providers`. */
@ApiSchema({ name: 'AddGitProviders' })
export class AddGitProvidersDto {
  @McpConfigField()
  mcp_config?: McpConfigDto | null;

  @ProviderTokenMap()
  provider_tokens?: ProviderTokenInputs;
}
