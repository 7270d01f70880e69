import { Controller, Get, Param } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import {
  type CurrentApiKeyDto,
  OrganizationIdDto,
  type OrganizationMemberDto,
  type OrganizationPageDto,
  type OwnModelKeyDto,
  type ProviderConnectionsDto,
  toCurrentApiKeyDto,
  toOrganizationMemberDto,
  toOrganizationPageDto,
} from './organizations.dto.js';
import {
  CurrentApiKeyOperation,
  ListOrganizationsOperation,
  OrganizationMemberOperation,
  OwnModelKeyOperation,
  ProviderConnectionsOperation,
} from './organizations.openapi.js';

/** Users as web applications for organizations see them: each is the owner of a space of their own. */
@ApiTags('API keys')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class OrganizationsController {
  @Get('keys/current')
  @CurrentApiKeyOperation()
  currentKey(@CurrentUser() user: AuthUser): CurrentApiKeyDto {
    return toCurrentApiKeyDto(user);
  }

  @Get('keys/llm/byor')
  @OwnModelKeyOperation()
  ownModelKey(): OwnModelKeyDto {
    return { key: null };
  }

  @Get('organizations')
  @ListOrganizationsOperation()
  list(@CurrentUser() user: AuthUser): OrganizationPageDto {
    return toOrganizationPageDto(user);
  }

  @Get('organizations/:id/me')
  @OrganizationMemberOperation()
  member(@CurrentUser() user: AuthUser, @Param() { id }: OrganizationIdDto): OrganizationMemberDto {
    return toOrganizationMemberDto(ownerOf(user, id));
  }

  @Get('organizations/:id/provider-connections')
  @ProviderConnectionsOperation()
  connections(@CurrentUser() user: AuthUser, @Param() { id }: OrganizationIdDto): ProviderConnectionsDto {
    ownerOf(user, id);
    return { connections: [] };
  }
}

/** @throws DomainError not_found for the space of anybody else */
function ownerOf(user: AuthUser, id: string): AuthUser {
  if (id !== user.id) {
    throw new DomainError('not_found', 'not_found', 'There is no organization with this id.');
  }
  return user;
}
