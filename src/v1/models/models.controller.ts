import { Controller, Get, Query } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { PageOf, PageQuery, toPageDto } from '@slipway/api/pagination/page.dto.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import { AcpAgents } from '../app-conversations/agent-request/acp-agents.js';
import { OWN_AGENT } from '@slipway/settings/agent-settings.js';
import type { ListedModel } from '@slipway/models/model-catalogue.js';
import { ModelsService } from './models.service.js';

class SearchProvidersQueryDto extends PageQuery('Most entries of a page.', 50) {
  @Text('Part of the name; upper and lower case do not matter.', { example: 'sonnet' }) query?: string;
  @Flag('Only verified ones, or only the others.', { example: true }) verified__eq?: boolean;
}

class SearchModelsQueryDto extends SearchProvidersQueryDto {
  @Text('The provider, exactly.', { example: 'anthropic' }) provider__eq?: string;
}

const VERIFIED =
  'The agent server of this service reaches it by its name alone, or the operator lists it. Every other model needs the address of its provider (`base_url`).';

@ApiSchema({ name: 'LLMModel' })
class ModelDto {
  @OrNull('anthropic') provider: string | null;
  @ApiProperty({ description: 'Without the provider.', example: 'claude-sonnet-4-5' }) name: string;
  @ApiProperty({ description: VERIFIED, example: true }) verified: boolean;
  @Shown('Always false: every listed model may be offered.', false) hidden: boolean;
  @OrNull(null, { description: 'Always null: no model is an alias.' }) canonical: null;
}

@ApiSchema({ name: 'LLMModelPage' })
class ModelPageDto extends PageOf(ModelDto) {}

function toModelDto(model: ListedModel): ModelDto {
  return { ...model, hidden: false, canonical: null };
}

class ProviderDto {
  @ApiProperty({ example: 'anthropic' }) name: string;
  @ApiProperty({ description: 'Some of its models are verified.', example: true }) verified: boolean;
}

class ProviderPageDto extends PageOf(ProviderDto) {}

@ApiTags('Config')
@Controller('api/v1/config')
export class ModelsController {
  constructor(
    private readonly models: ModelsService,
    private readonly agents: AcpAgents,
  ) {}

  @Get('agents')
  @ApiRoute('list_agents', 'List agents', {
    description: 'Our own agent, then those of others that the operator lists.',
    answer: {
      type: [String],
      description: 'Names, as settings and starts take them',
      example: [OWN_AGENT, 'acp:claude-code'],
    },
  })
  listAgents(): string[] {
    return [OWN_AGENT, ...this.agents.names];
  }

  @Get('models/search')
  @ApiRoute('search_models_', 'Search models', {
    description:
      'From the catalogue of prices that comes with the service, and the list of the operator. Any other model can be named in the settings too.',
    answer: { type: ModelPageDto, description: 'A page of models, by provider and name' },
  })
  async searchModels(@Query() query: SearchModelsQueryDto): Promise<ModelPageDto> {
    return toPageDto(await this.models.searchModels(query), toModelDto);
  }

  @Get('providers/search')
  @ApiRoute('search_providers_', 'Search providers of models', {
    description: 'The providers of the models that a search of models finds.',
    answer: { type: ProviderPageDto, description: 'A page of providers, verified ones first' },
  })
  async searchProviders(@Query() query: SearchProvidersQueryDto): Promise<ProviderPageDto> {
    return toPageDto(await this.models.searchProviders(query), (provider) => provider);
  }
}
