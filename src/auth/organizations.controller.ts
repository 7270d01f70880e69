import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { OwnOrganizationGuard } from './auth.guard.js';
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

  @Get('organizations/:organization_id/me')
  @UseGuards(OwnOrganizationGuard)
  @OrganizationMemberOperation()
  member(@CurrentUser() user: AuthUser, @Param() _path: OrganizationIdDto): OrganizationMemberDto {
    return toOrganizationMemberDto(user);
  }

  @Get('organizations/:organization_id/provider-connections')
  @UseGuards(OwnOrganizationGuard)
  @ProviderConnectionsOperation()
  connections(@Param() _path: OrganizationIdDto): ProviderConnectionsDto {
    return { connections: [] };
  }
}
