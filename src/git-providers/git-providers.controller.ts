import { Body, Controller, Get, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { ApiRoute, type DocumentedProblem } from '../common/openapi/api-route.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  GitUserDto,
  INVALID_TOKEN,
  REMOVE_TOKENS,
  STORE_TOKENS,
  toGitProvidersStoredDto,
  toGitProvidersUnsetDto,
  toGitUserDto,
} from './git-providers.dto.js';
import { PROVIDER_TYPES } from './git-provider.js';
import { GitProvidersService } from './git-providers.service.js';

const NO_TOKEN: DocumentedProblem = {
  status: 401,
  code: 'no_git_provider',
  detail: 'No providers set.',
  description: 'No valid API key, no stored token, or one that its provider rejects',
};

const SHOW_ACCOUNT = {
  summary: 'Show the account at the git provider',
  description: `Of the first provider with a token: ${PROVIDER_TYPES.join(', ')}.`,
  answer: { type: GitUserDto, description: 'The account' },
  problems: [NO_TOKEN, INVALID_TOKEN, 502, 504],
};

@ApiTags('Git providers')
@Controller('api')
export class GitProvidersController {
  constructor(private readonly providers: GitProvidersService) {}

  @Post('add-git-providers')
  @ApiRoute({ ...STORE_TOKENS, id: 'store_provider_tokens_api_add_git_providers_post' })
  async add(@CurrentUser() user: AuthUser, @Body() body: AddGitProvidersDto): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.providers.add(user.id, body));
  }

  @Post('unset-provider-tokens')
  @ApiRoute({ ...REMOVE_TOKENS, id: 'unset_provider_tokens_api_unset_provider_tokens_post' })
  async unset(@CurrentUser() user: AuthUser): Promise<GitProvidersUnsetDto> {
    await this.providers.removeTokens(user.id);
    return toGitProvidersUnsetDto();
  }

  @Get('user/info')
  @ApiRoute({ ...SHOW_ACCOUNT, id: 'get_user_api_user_info_get' })
  async userInfo(@CurrentUser() user: AuthUser): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(user.id));
  }

  @Get('v1/users/git-info')
  @ApiRoute({ ...SHOW_ACCOUNT, id: 'get_current_user_git_info_api_v1_users_git_info_get' })
  async gitInfo(@CurrentUser() user: AuthUser): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(user.id));
  }
}
