import { Body, Controller, Delete, Get, Param, Post, Put } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import {
  CreateSecretDto,
  type CustomSecretsDto,
  type SecretMessageDto,
  secretWarning,
  SecretNameDto,
  toCustomSecretsDto,
  UpdateSecretDto,
} from './secrets.dto.js';
import {
  CreateSecretOperation,
  ListSecretsOperation,
  RemoveSecretOperation,
  UpdateSecretOperation,
} from '../flat/settings.openapi.js';
import { SecretsService } from './secrets.service.js';

@ApiTags('Custom secrets')
@ApiSecurity('APIKeyHeader')
@Controller('api/secrets')
export class SecretsController {
  constructor(private readonly secrets: SecretsService) {}

  @Get()
  @ListSecretsOperation()
  async list(@CurrentUser() user: AuthUser): Promise<CustomSecretsDto> {
    return toCustomSecretsDto(await this.secrets.list(user.id));
  }

  @Post()
  @CreateSecretOperation()
  async create(@CurrentUser() user: AuthUser, @Body() body: CreateSecretDto): Promise<SecretMessageDto> {
    await this.secrets.create(user.id, body);
    return { message: 'Secret stored', ...secretWarning(body.name, body.value) };
  }

  @Put(':name')
  @UpdateSecretOperation()
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { name }: SecretNameDto,
    @Body() body: UpdateSecretDto,
  ): Promise<SecretMessageDto> {
    await this.secrets.update(user.id, name, body);
    return { message: 'Secret changed', ...secretWarning(body.name, body.value) };
  }

  @Delete(':name')
  @RemoveSecretOperation()
  async remove(@CurrentUser() user: AuthUser, @Param() { name }: SecretNameDto): Promise<SecretMessageDto> {
    await this.secrets.remove(user.id, name);
    return { message: 'Secret removed' };
  }
}
