import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  type GitUserDto,
  toGitProvidersStoredDto,
  toGitProvidersUnsetDto,
  toGitUserDto,
} from './git-providers.dto.js';
import {
  AddGitProvidersOperation,
  GitUserOperation,
  UnsetProviderTokensOperation,
} from './git-providers.openapi.js';
import { GitProvidersService } from './git-providers.service.js';

@ApiTags('Git providers')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class GitProvidersController {
  constructor(private readonly providers: GitProvidersService) {}

  @Post('add-git-providers')
  @HttpCode(200)
  @AddGitProvidersOperation()
  async add(@CurrentUser() user: AuthUser, @Body() body: AddGitProvidersDto): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.providers.add(user.id, body));
  }

  @Post('unset-provider-tokens')
  @HttpCode(200)
  @UnsetProviderTokensOperation()
  async unset(@CurrentUser() user: AuthUser): Promise<GitProvidersUnsetDto> {
    await this.providers.removeTokens(user.id);
    return toGitProvidersUnsetDto();
  }

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
