import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import {
  ApiOkResponse,
  ApiOperation,
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiSecurity,
  ApiTags,
} from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import type { AuthUser } from './auth-user.js';
import { ApiKeysService } from './api-keys.service.js';
import { CurrentUser } from './current-user.decorator.js';
import { ApiKeyDto, toApiKeyDto } from './dto/api-key.dto.js';
import { CreateApiKeyDto } from './dto/create-api-key.dto.js';
import { IssuedApiKeyDto, toIssuedApiKeyDto } from './dto/issued-api-key.dto.js';
import { KeyOwnerQueryDto } from './dto/key-owner-query.dto.js';

@ApiTags('API keys')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/api-keys')
export class ApiKeysController {
  constructor(private readonly keys: ApiKeysService) {}

  @Post()
  @ApiOperation({
    summary: 'Issue an API key',
    description:
      'The key itself is in this answer and nowhere else. Administrators may issue keys for other users.',
  })
  @ApiCreatedResponse({ type: IssuedApiKeyDto, description: 'The new key' })
  @ApiProblems(403, 404, 413, 415, 422)
  async issue(@CurrentUser() user: AuthUser, @Body() body: CreateApiKeyDto): Promise<IssuedApiKeyDto> {
    return toIssuedApiKeyDto(
      await this.keys.issueAs(user, body.name, body.expires_at ?? null, body.user_id ?? undefined),
    );
  }

  @Get()
  @ApiOperation({ summary: 'List API keys', description: 'Newest first, without the keys themselves.' })
  @ApiOkResponse({ type: [ApiKeyDto], description: 'The keys, revoked and expired ones included' })
  @ApiProblems(403, 404, 422)
  async list(@CurrentUser() user: AuthUser, @Query() query: KeyOwnerQueryDto): Promise<ApiKeyDto[]> {
    return (await this.keys.listAs(user, query.user_id)).map(toApiKeyDto);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Revoke an API key', description: 'Holds within five seconds on every replica.' })
  @ApiNoContentResponse({ description: 'Revoked' })
  @ApiProblems({ status: 404, detail: 'There is no API key with this id.' })
  async revoke(@CurrentUser() user: AuthUser, @Param('id') id: string): Promise<void> {
    await this.keys.revokeAs(user, id);
  }
}
