import { Body, Controller, Delete, Get, Param, Post, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute } from '../../common/openapi/api-route.js';
import {
  badSecretName,
  CreateSecretDto,
  CustomSecretsDto,
  SECRET_NAME_TAKEN,
  SecretMessageDto,
  SecretNameDto,
  secretWarning,
  toCustomSecretsDto,
  UNKNOWN_SECRET,
  UpdateSecretDto,
} from './secrets.dto.js';
import { SecretsService } from './secrets.service.js';

@ApiTags('Custom secrets')
@Controller('api/secrets')
export class SecretsController {
  constructor(private readonly secrets: SecretsService) {}

  @Get()
  @ApiRoute('load_custom_secrets_names_api_secrets_get', 'List custom secrets', {
    description: 'Names and descriptions, by name; never a value.',
    answer: { type: CustomSecretsDto, description: 'The secrets; an empty list when there are none' },
  })
  async list(@UserId() userId: string): Promise<CustomSecretsDto> {
    return toCustomSecretsDto(await this.secrets.list(userId));
  }

  @Post()
  @ApiRoute('create_custom_secret_api_secrets_post', 'Store a custom secret', {
    description: "The user's agents get it as an environment variable; no answer ever holds the value.",
    status: 201,
    answer: { type: SecretMessageDto, description: 'Stored' },
    problems: [SECRET_NAME_TAKEN],
    invalid: badSecretName('body.name'),
  })
  async create(@UserId() userId: string, @Body() body: CreateSecretDto): Promise<SecretMessageDto> {
    await this.secrets.create(userId, body);
    return { message: 'Secret stored', ...secretWarning(body.name, body.value) };
  }

  @Put(':name')
  @ApiRoute('update_custom_secret_api_secrets__secret_id__put', 'Change a custom secret', {
    description: 'Renames it, describes it anew, and replaces its value if one is given.',
    answer: { type: SecretMessageDto, description: 'Changed', example: { message: 'Secret changed' } },
    problems: [SECRET_NAME_TAKEN, UNKNOWN_SECRET],
    invalid: badSecretName('body.name'),
  })
  async update(
    @UserId() userId: string,
    @Param() { name }: SecretNameDto,
    @Body() body: UpdateSecretDto,
  ): Promise<SecretMessageDto> {
    await this.secrets.update(userId, name, body);
    return { message: 'Secret changed', ...secretWarning(body.name, body.value) };
  }

  @Delete(':name')
  @ApiRoute('delete_custom_secret_api_secrets__secret_id__delete', 'Remove a custom secret', {
    description: 'Its value is gone for good.',
    answer: { type: SecretMessageDto, description: 'Removed', example: { message: 'Secret removed' } },
    problems: [UNKNOWN_SECRET],
    invalid: badSecretName('path.name'),
  })
  async remove(@UserId() userId: string, @Param() { name }: SecretNameDto): Promise<SecretMessageDto> {
    await this.secrets.remove(userId, name);
    return { message: 'Secret removed' };
  }
}
