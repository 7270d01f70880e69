import { Controller, Get, Header, Headers, Param, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, BesideSandboxKey, CurrentUser } from '../../auth/auth.decorators.js';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import {
  SandboxIdDto,
  SandboxSecretPathDto,
  type SandboxSecretsDto,
  type UserInfoDto,
  UserInfoQueryDto,
} from './sandbox-settings.dto.js';
import {
  GetCurrentUserOperation,
  GetSandboxSecretOperation,
  ListSandboxSecretsOperation,
} from './sandbox-settings.openapi.js';
import { SandboxSettingsService } from './sandbox-settings.service.js';

@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@BesideSandboxKey()
@Controller('api/v1/users/me')
export class CurrentUserController {
  constructor(private readonly settings: SandboxSettingsService) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  @GetCurrentUserOperation()
  async get(
    @CurrentUser() { id }: AuthUser,
    @Query() { expose_secrets: expose = false }: UserInfoQueryDto,
    @Headers('x-session-api-key') sandboxKey: string | undefined,
  ): Promise<UserInfoDto> {
    return expose ? this.settings.userInfoInClear(id, sandboxKey) : this.settings.userInfo(id);
  }
}

@ApiTags('Sandboxes')
@SandboxAuthenticated()
@Controller('api/v1/sandboxes/:sandbox_id/settings/secrets')
export class SandboxSecretsController {
  constructor(private readonly settings: SandboxSettingsService) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  @ListSandboxSecretsOperation()
  async list(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id }: SandboxIdDto,
  ): Promise<SandboxSecretsDto> {
    return { secrets: await this.settings.listSecrets(holder, id) };
  }

  @Get(':secret_name')
  @Header('Cache-Control', 'no-store')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  @GetSandboxSecretOperation()
  async get(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id, secret_name: name }: SandboxSecretPathDto,
  ): Promise<string> {
    return this.settings.findSecret(holder, id, name);
  }
}
