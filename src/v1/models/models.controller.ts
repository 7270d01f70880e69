import { Controller, Get, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import {
  type ModelPageDto,
  type ProviderPageDto,
  SearchModelsQueryDto,
  SearchProvidersQueryDto,
  toModelPageDto,
  toProviderPageDto,
} from './models.dto.js';
import { SearchModelsOperation, SearchProvidersOperation } from './models.openapi.js';
import { ModelsService } from './models.service.js';

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
