import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  toGitProvidersStoredDto,
  toGitProvidersUnsetDto,
} from './git-tokens.dto.js';
import { GitTokensService } from './git-tokens.service.js';
import { CreateSecretDto, secretWarning, UpdateSecretDto } from './secrets.dto.js';
import { SecretsService } from './secrets.service.js';
import {
  type EditResponseDto,
  SecretIdDto,
  type SecretPageDto,
  SecretSearchDto,
  toSecretPageDto,
} from './secrets-v1.dto.js';
import {
  DeleteSecretOperation,
  SearchSecretsOperation,
  StoreGitProvidersOperation,
  StoreSecretOperation,
  UnsetGitProvidersOperation,
  UpdateSecretV1Operation,
} from './secrets-v1.openapi.js';

/** Custom secrets and git tokens at the addresses of newer clients: the same rows as under `/api/secrets`. */
@ApiTags('Custom secrets')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/secrets')
export class SecretsV1Controller {
  constructor(
    private readonly secrets: SecretsService,
    private readonly gitTokens: GitTokensService,
  ) {}

  @Get('search')
  @SearchSecretsOperation()
  async search(@CurrentUser() user: AuthUser, @Query() query: SecretSearchDto): Promise<SecretPageDto> {
    return toSecretPageDto(await this.secrets.search(user.id, query));
  }

  @Post()
  @StoreSecretOperation()
  async store(@CurrentUser() user: AuthUser, @Body() body: CreateSecretDto): Promise<EditResponseDto> {
    await this.secrets.store(user.id, body);
    return { message: 'Secret created successfully', ...secretWarning(body.name, body.value) };
  }

  // Declared before the routes with a name, which would match it too.
  @Post('git-providers')
  @HttpCode(200)
  @StoreGitProvidersOperation()
  async storeGitProviders(
    @CurrentUser() user: AuthUser,
    @Body() body: AddGitProvidersDto,
  ): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.gitTokens.add(user.id, body));
  }

  @Delete('git-providers')
  @UnsetGitProvidersOperation()
  async unsetGitProviders(@CurrentUser() user: AuthUser): Promise<GitProvidersUnsetDto> {
    await this.gitTokens.removeAll(user.id);
    return toGitProvidersUnsetDto();
  }

  @Put(':secret_id')
  @UpdateSecretV1Operation()
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { secret_id: name }: SecretIdDto,
    @Body() body: UpdateSecretDto,
  ): Promise<EditResponseDto> {
    await this.secrets.update(user.id, name, body);
    return { message: 'Secret updated successfully', ...secretWarning(body.name, body.value) };
  }

  @Delete(':secret_id')
  @DeleteSecretOperation()
  async remove(
    @CurrentUser() user: AuthUser,
    @Param() { secret_id: name }: SecretIdDto,
  ): Promise<EditResponseDto> {
    await this.secrets.remove(user.id, name);
    return { message: 'Secret deleted successfully' };
  }
}
