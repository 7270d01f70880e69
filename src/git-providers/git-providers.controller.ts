import { Controller, Get } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { type GitUserDto, toGitUserDto } from './git-providers.dto.js';
import { GitUserOperation } from './git-providers.openapi.js';
import { GitProvidersService } from './git-providers.service.js';

@ApiTags('Git providers')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class GitProvidersController {
  constructor(private readonly providers: GitProvidersService) {}

  @Get('user/info')
  @GitUserOperation('get_user_api_user_info_get')
  async userInfo(@CurrentUser() user: AuthUser): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(user.id));
  }

  @Get('v1/users/git-info')
  @GitUserOperation('get_current_user_git_info_api_v1_users_git_info_get')
  async gitInfo(@CurrentUser() user: AuthUser): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(user.id));
  }
}
