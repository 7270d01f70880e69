import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { CreateApiKeyOperation, ListApiKeysOperation, RevokeApiKeyOperation } from './api-keys.openapi.js';
import { ApiKeysService } from './api-keys.service.js';
import {
  ApiKeyIdDto,
  toApiKeyDto,
  type ApiKeyDto,
  CreateApiKeyDto,
  toIssuedApiKeyDto,
  type IssuedApiKeyDto,
  KeyOwnerQueryDto,
} from './api-keys.dto.js';

@ApiTags('API keys')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/api-keys')
export class ApiKeysController {
  constructor(private readonly keys: ApiKeysService) {}

  @Post()
  @CreateApiKeyOperation()
  async issue(@CurrentUser() user: AuthUser, @Body() body: CreateApiKeyDto): Promise<IssuedApiKeyDto> {
    return toIssuedApiKeyDto(
      await this.keys.issueAs(user, body.name, body.expires_at ?? null, body.user_id ?? undefined),
    );
  }

  @Get()
  @ListApiKeysOperation()
  async list(@CurrentUser() user: AuthUser, @Query() query: KeyOwnerQueryDto): Promise<ApiKeyDto[]> {
    return (await this.keys.listAs(user, query.user_id)).map(toApiKeyDto);
  }

  @Delete(':id')
  @HttpCode(204)
  @RevokeApiKeyOperation()
  async revoke(@CurrentUser() user: AuthUser, @Param() { id }: ApiKeyIdDto): Promise<void> {
    await this.keys.revokeAs(user, id);
  }
}
