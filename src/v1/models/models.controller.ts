import { applyDecorators, Controller, Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import {
  ModelPageDto,
  ProviderPageDto,
  SearchModelsQueryDto,
  SearchProvidersQueryDto,
  toModelPageDto,
  toProviderPageDto,
} from './models.dto.js';
import { ModelsService } from './models.service.js';

const BAD_LIMIT = invalidInput(['query', 'limit'], 'less_than_equal', 'Expected at most 100.');

/** Documents `GET /api/v1/config/models/search`. */
function SearchModelsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_models_api_v1_config_models_search_get',
      summary: 'Search models',
      description:
        'From the catalogue of prices that comes with the service, and the list of the operator. Any other model can be named in the settings too.',
    }),
    ApiOkResponse({ type: ModelPageDto, description: 'A page of models, by provider and name' }),
    ApiProblems(BAD_LIMIT),
  );
}

/** Documents `GET /api/v1/config/providers/search`. */
function SearchProvidersOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_providers_api_v1_config_providers_search_get',
      summary: 'Search providers of models',
      description: 'The providers of the models that a search of models finds.',
    }),
    ApiOkResponse({ type: ProviderPageDto, description: 'A page of providers, verified ones first' }),
    ApiProblems(BAD_LIMIT),
  );
}

@ApiTags('Config')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/config')
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Get('models/search')
  @SearchModelsOperation()
  async searchModels(@Query() query: SearchModelsQueryDto): Promise<ModelPageDto> {
    return toModelPageDto(await this.models.searchModels(query));
  }

  @Get('providers/search')
  @SearchProvidersOperation()
  async searchProviders(@Query() query: SearchProvidersQueryDto): Promise<ProviderPageDto> {
    return toProviderPageDto(await this.models.searchProviders(query));
  }
}
