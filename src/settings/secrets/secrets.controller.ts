import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { CredentialsPlace } from '../../config/credentials-place.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  REMOVE_TOKENS,
  STORE_TOKENS,
  toGitProvidersStoredDto,
  TOKENS_REMOVED,
} from './git-tokens.dto.js';
import { OF_USERS, OfUsers } from '../settings-owner.js';
import { GitTokensService } from './git-tokens.controller.js';
import {
  badSecretName,
  changeWarning,
  CreateSecretDto,
  CustomSecretsDto,
  EditResponseDto,
  SecretIdDto,
  SecretMessageDto,
  SecretNameDto,
  SecretPageDto,
  SecretSearchDto,
  toSecretDescriptionDto,
  toSecretWithoutValueDto,
  UpdateSecretDto,
} from './secrets.dto.js';
import { CustomSecretRepository, secretNameTaken, unknownSecret } from './custom-secret.repository.js';

const NAME_TAKEN = thrown(secretNameTaken('DEPLOY_TOKEN'), 'The name is taken');
const UNKNOWN = thrown(unknownSecret('DEPLOY_TOKEN'), 'Unknown name');

function edited(description: string, message: string): ApiResponseNoStatusOptions {
  return { type: EditResponseDto, description, example: { message } };
}

@ApiTags('Custom secrets')
@OfUsers(OF_USERS.secrets)
@Controller('api/secrets')
export class SecretsController {
  constructor(
    private readonly secrets: CustomSecretRepository,
    private readonly place: CredentialsPlace,
  ) {}

  @Get()
  @ApiRoute('load_custom_secrets_names_', 'List custom secrets', {
    description: 'Names, descriptions and hosts, by name; never a value.',
    answer: { type: CustomSecretsDto, description: 'The secrets; an empty list when there are none' },
  })
  async list(@UserId() userId: string): Promise<CustomSecretsDto> {
    return { custom_secrets: (await this.secrets.describe(userId)).map(toSecretDescriptionDto) };
  }

  @Post()
  @ApiRoute('create_custom_secret_', 'Store a custom secret', {
    description: "The user's agents get it as an environment variable; no answer ever holds the value.",
    status: 201,
    answer: { type: SecretMessageDto, description: 'Stored' },
    problems: [NAME_TAKEN],
    invalid: badSecretName('body.name'),
  })
  async create(@UserId() userId: string, @Body() body: CreateSecretDto): Promise<SecretMessageDto> {
    await this.secrets.add(userId, body);
    return { message: 'Secret stored', ...changeWarning(body, this.place.isOutside()) };
  }

  @Put(':name')
  @ApiRoute('update_custom_secret_api_secrets__secret_id__put', 'Change a custom secret', {
    description: 'Renames it, describes it anew, and replaces its value if one is given.',
    answer: { type: SecretMessageDto, description: 'Changed', example: { message: 'Secret changed' } },
    problems: [NAME_TAKEN, UNKNOWN],
    invalid: badSecretName('body.name'),
  })
  async update(
    @UserId() userId: string,
    @Param() { name }: SecretNameDto,
    @Body() body: UpdateSecretDto,
  ): Promise<SecretMessageDto> {
    await this.secrets.change(userId, name, body);
    return { message: 'Secret changed', ...changeWarning(body, this.place.isOutside()) };
  }

  @Delete(':name')
  @ApiRoute('delete_custom_secret_api_secrets__secret_id__delete', 'Remove a custom secret', {
    description: 'Its value is gone for good.',
    answer: { type: SecretMessageDto, description: 'Removed', example: { message: 'Secret removed' } },
    problems: [UNKNOWN],
    invalid: badSecretName('path.name'),
  })
  async remove(@UserId() userId: string, @Param() { name }: SecretNameDto): Promise<SecretMessageDto> {
    await this.secrets.removeNamed(userId, name);
    return { message: 'Secret removed' };
  }
}

/** Custom secrets and git tokens at the addresses of newer clients: the same rows as under `/api/secrets`. */
@ApiTags('Custom secrets')
@OfUsers(OF_USERS.secrets)
@Controller('api/v1/secrets')
export class SecretsV1Controller {
  constructor(
    private readonly secrets: CustomSecretRepository,
    private readonly gitTokens: GitTokensService,
    private readonly place: CredentialsPlace,
  ) {}

  @Get('search')
  @ApiRoute('search_custom_secrets_', 'Search custom secrets', {
    description:
      'Names, descriptions and hosts in pages, by name; never a value. Those of the organization are among them, but where the user has one of the same name.',
    answer: { type: SecretPageDto, description: 'A page of secrets' },
  })
  async search(@UserId() userId: string, @Query() query: SecretSearchDto): Promise<SecretPageDto> {
    const owners = [userId, INSTALLATION_ORGANIZATION_ID];
    return toPageDto(await this.secrets.search(owners, query), toSecretWithoutValueDto);
  }

  @Post()
  @ApiRoute('create_custom_secret_', 'Store a custom secret, or replace it', {
    description:
      'A secret of that name gets the new value, and keeps its description and hosts unless others are given. With `hosts`, sandboxes get a placeholder where credentials stay outside. No answer ever holds the value.',
    status: 201,
    answer: edited('Stored', 'Secret created successfully'),
    invalid: badSecretName('body.name'),
  })
  async store(@UserId() userId: string, @Body() body: CreateSecretDto): Promise<EditResponseDto> {
    await this.secrets.store(userId, body);
    return { message: 'Secret created successfully', ...changeWarning(body, this.place.isOutside()) };
  }

  // Declared before the routes with a name, which would match it too.
  @Post('git-providers')
  @OfUsers(OF_USERS.gitTokens)
  @ApiRoute('store_provider_tokens_', STORE_TOKENS.summary, STORE_TOKENS)
  async storeGitProviders(
    @UserId() userId: string,
    @Body() body: AddGitProvidersDto,
  ): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.gitTokens.add(userId, body));
  }

  @Delete('git-providers')
  @OfUsers(OF_USERS.gitTokens)
  @ApiRoute('unset_provider_tokens_', REMOVE_TOKENS.summary, REMOVE_TOKENS)
  async unsetGitProviders(@UserId() userId: string): Promise<GitProvidersUnsetDto> {
    await this.gitTokens.removeAll(userId);
    return TOKENS_REMOVED;
  }

  @Put(':secret_id')
  @ApiRoute('update_custom_secret_', 'Rename or describe a custom secret', {
    description: 'Replaces its value too if one is given.',
    answer: edited('Changed', 'Secret updated successfully'),
    problems: [NAME_TAKEN, UNKNOWN],
    invalid: badSecretName('body.name'),
  })
  async update(
    @UserId() userId: string,
    @Param() { secret_id: name }: SecretIdDto,
    @Body() body: UpdateSecretDto,
  ): Promise<EditResponseDto> {
    await this.secrets.change(userId, name, body);
    return { message: 'Secret updated successfully', ...changeWarning(body, this.place.isOutside()) };
  }

  @Delete(':secret_id')
  @ApiRoute('delete_custom_secret_', 'Delete a custom secret', {
    description: 'Its value is gone for good.',
    answer: edited('Removed', 'Secret deleted successfully'),
    problems: [UNKNOWN],
    invalid: badSecretName('path.secret_id'),
  })
  async remove(
    @UserId() userId: string,
    @Param() { secret_id: name }: SecretIdDto,
  ): Promise<EditResponseDto> {
    await this.secrets.removeNamed(userId, name);
    return { message: 'Secret deleted successfully' };
  }
}
