import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { Time } from '@slipway/api/openapi/responses.js';
import { PageOf, PageQuery, toPageDto } from '@slipway/api/pagination/page.dto.js';
import { CredentialsPlace } from '../../config/credentials-place.js';
import { toShownInjectionDto } from '../secrets/secret-injection.dto.js';
import {
  CustomSecretRepository,
  type FoundSecret,
  secretNameTaken,
  unknownSecret,
} from '../secrets/custom-secret.repository.js';
import {
  badSecretName,
  changeWarning,
  CreateSharedSecretDto,
  CustomSecretName,
  DescribeSecretDto,
  SecretDescriptionDto,
} from '../secrets/secrets.dto.js';
import { ADMINISTRATORS_CHANGE, OrganizationOwner } from '../settings-owner.js';
import { OrganizationPathDto, UNKNOWN_ORGANIZATION } from './organization-settings.controller.js';

const NAME_TAKEN = thrown(secretNameTaken('DEPLOY_TOKEN', 'conflict'), 'The name is taken');
const UNKNOWN = thrown(unknownSecret('DEPLOY_TOKEN'), 'Unknown name, or an unknown organization');

class OrganizationSecretPathDto extends OrganizationPathDto {
  @CustomSecretName('Name of the secret.') name: string;
}

class OrganizationSecretsQueryDto extends PageQuery('Most secrets of a page.') {}

@ApiSchema({ name: 'OrganizationSecret' })
class OrganizationSecretDto extends SecretDescriptionDto {
  @Time() created_at: string;
}

@ApiSchema({ name: 'OrganizationSecretPage' })
class OrganizationSecretPageDto extends PageOf(OrganizationSecretDto) {}

@ApiSchema({ name: 'StoredOrganizationSecret' })
class StoredOrganizationSecretDto extends OrganizationSecretDto {
  @ApiProperty({ required: false, description: 'Why the value will not be hidden in events and outputs.' })
  warning?: string;
}

function toOrganizationSecretDto(
  { name, description, injection, phase, createdAt }: FoundSecret,
  warning: { warning?: string } = {},
): StoredOrganizationSecretDto {
  const shown = toShownInjectionDto(injection, phase);
  return { name, description, ...shown, created_at: createdAt.toISOString(), ...warning };
}

/** Secrets that the conversations of all members get. No route answers a value. */
@ApiTags('Custom secrets')
@Controller('api/organizations/:organization_id/secrets')
export class OrganizationSecretsController {
  constructor(
    private readonly secrets: CustomSecretRepository,
    private readonly place: CredentialsPlace,
  ) {}

  @Get()
  @ApiRoute('list_org_secrets', 'List secrets of the organization', {
    description: 'Names, descriptions and hosts in pages, by name; never a value. All members may.',
    answer: { type: OrganizationSecretPageDto, description: 'A page of secrets' },
    problems: [UNKNOWN_ORGANIZATION],
  })
  async list(
    @OrganizationOwner() ownerId: string,
    @Param() _path: OrganizationPathDto,
    @Query() query: OrganizationSecretsQueryDto,
  ): Promise<OrganizationSecretPageDto> {
    return toPageDto(await this.secrets.search([ownerId], query), (secret) =>
      toOrganizationSecretDto(secret),
    );
  }

  @Post()
  @ApiRoute('create_org_secret', 'Store a secret of the organization', {
    description:
      'The agents of all members get it as an environment variable, unless the member has a secret of that name: its value is in clear in their sandboxes or, with `hosts`, a placeholder where credentials stay outside. No answer ever holds it. Administrators alone.',
    status: 201,
    answer: { type: StoredOrganizationSecretDto, description: 'Stored' },
    problems: [UNKNOWN_ORGANIZATION, NAME_TAKEN, ADMINISTRATORS_CHANGE],
    invalid: badSecretName('body.name'),
  })
  async create(
    @OrganizationOwner() ownerId: string,
    @Param() _path: OrganizationPathDto,
    @Body() body: CreateSharedSecretDto,
  ): Promise<StoredOrganizationSecretDto> {
    await this.secrets.add(ownerId, body, 'conflict');
    const secret = await this.secrets.findDescription(ownerId, body.name);
    return toOrganizationSecretDto(secret, changeWarning(body, this.place.isOutside()));
  }

  @Put(':name')
  @ApiRoute('update_org_secret', 'Rename or describe a secret of the organization, or change its hosts', {
    description: 'Its value stays: delete it, and store another in its place. Administrators alone.',
    answer: { type: StoredOrganizationSecretDto, description: 'Changed' },
    problems: [UNKNOWN, NAME_TAKEN, ADMINISTRATORS_CHANGE],
    invalid: badSecretName('body.name'),
  })
  async update(
    @OrganizationOwner() ownerId: string,
    @Param() { name }: OrganizationSecretPathDto,
    @Body() body: DescribeSecretDto,
  ): Promise<StoredOrganizationSecretDto> {
    await this.secrets.change(ownerId, name, body, 'conflict');
    const secret = await this.secrets.findDescription(ownerId, body.name ?? name);
    return toOrganizationSecretDto(
      secret,
      changeWarning({ name: secret.name, hosts: body.hosts ?? null }, this.place.isOutside()),
    );
  }

  @Delete(':name')
  @ApiRoute('delete_org_secret', 'Delete a secret of the organization', {
    description: 'Its value is gone for good. Administrators alone.',
    status: 204,
    answer: { description: 'Deleted' },
    problems: [UNKNOWN, ADMINISTRATORS_CHANGE],
    invalid: badSecretName('path.name'),
  })
  async remove(
    @OrganizationOwner() ownerId: string,
    @Param() { name }: OrganizationSecretPathDto,
  ): Promise<void> {
    await this.secrets.removeNamed(ownerId, name);
  }
}
