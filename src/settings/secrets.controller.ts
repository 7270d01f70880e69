import { Body, Controller, Delete, Get, Param, Post, Put } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../auth/auth-user.js';
import { CurrentUser } from '../auth/current-user.decorator.js';
import { CreateSecretDto } from './dto/create-secret.dto.js';
import { toCustomSecretsDto, type CustomSecretsDto } from './dto/custom-secrets.dto.js';
import type { SecretMessageDto } from './dto/secret-message.dto.js';
import { SecretNameDto } from './dto/secret-name.dto.js';
import { UpdateSecretDto } from './dto/update-secret.dto.js';
import {
  CreateSecretOperation,
  ListSecretsOperation,
  RemoveSecretOperation,
  UpdateSecretOperation,
} from './secrets.operations.js';
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
    return { message: 'Secret stored' };
  }

  @Put(':name')
  @UpdateSecretOperation()
  async update(
    @CurrentUser() user: AuthUser,
    @Param() { name }: SecretNameDto,
    @Body() body: UpdateSecretDto,
  ): Promise<SecretMessageDto> {
    await this.secrets.update(user.id, name, body);
    return { message: 'Secret changed' };
  }

  @Delete(':name')
  @RemoveSecretOperation()
  async remove(@CurrentUser() user: AuthUser, @Param() { name }: SecretNameDto): Promise<SecretMessageDto> {
    await this.secrets.remove(user.id, name);
    return { message: 'Secret removed' };
  }
}
