import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { toPageDto } from '../../common/pagination/page.dto.js';
import { AcpAgents } from '../app-conversations/agent-request/acp-agents.js';
import { OWN_AGENT } from '../app-conversations/agent-request/agent-settings.js';
import {
  ModelPageDto,
  ProviderPageDto,
  SearchModelsQueryDto,
  SearchProvidersQueryDto,
  toModelDto,
} from './models.dto.js';
import { ModelsService } from './models.service.js';

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
  @ApiRoute('search_models_api_v1_config_models_search_get', 'Search models', {
    description:
      'From the catalogue of prices that comes with the service, and the list of the operator. Any other model can be named in the settings too.',
    answer: { type: ModelPageDto, description: 'A page of models, by provider and name' },
  })
  async searchModels(@Query() query: SearchModelsQueryDto): Promise<ModelPageDto> {
    return toPageDto(await this.models.searchModels(query), toModelDto);
  }

  @Get('providers/search')
  @ApiRoute('search_providers_api_v1_config_providers_search_get', 'Search providers of models', {
    description: 'The providers of the models that a search of models finds.',
    answer: { type: ProviderPageDto, description: 'A page of providers, verified ones first' },
  })
  async searchProviders(@Query() query: SearchProvidersQueryDto): Promise<ProviderPageDto> {
    return toPageDto(await this.models.searchProviders(query), (provider) => provider);
  }
}
