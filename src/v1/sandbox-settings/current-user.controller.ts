import { Controller, Get, Header, Headers, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../../auth/auth-user.js';
import { BesideSandboxKey } from '../../auth/beside-sandbox-key.decorator.js';
import { CurrentUser } from '../../auth/current-user.decorator.js';
import { CurrentUserInfo } from './current-user-info.js';
import { UserInfoQueryDto } from './dto/user-info-query.dto.js';
import type { UserInfoDto } from './dto/user-info.dto.js';
import { GetCurrentUserOperation } from './sandbox-settings.operations.js';

@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@BesideSandboxKey()
@Controller('api/v1/users/me')
export class CurrentUserController {
  constructor(private readonly info: CurrentUserInfo) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  @GetCurrentUserOperation()
  async get(
    @CurrentUser() { id }: AuthUser,
    @Query() { expose_secrets: expose = false }: UserInfoQueryDto,
    @Headers('x-session-api-key') sandboxKey: string | undefined,
  ): Promise<UserInfoDto> {
    return expose ? this.info.exposed(id, sandboxKey) : this.info.masked(id);
  }
}
