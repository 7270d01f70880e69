import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../auth/auth.decorators.js';
import { ApiRoute, thrown } from '../common/openapi/api-route.js';
import { GitUserDto, INVALID_TOKEN, toGitUserDto } from './git-providers.dto.js';
import { PROVIDER_TYPES } from './git-provider.js';
import { noGitProvider } from './git-provider-problem.js';
import { GitProvidersService } from './git-providers.service.js';

const NO_TOKEN = thrown(
  noGitProvider(),
  'No valid API key, no stored token, or one that its provider rejects',
);

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

  @Get('user/info')
  @ApiRoute('get_user_', SHOW_ACCOUNT.summary, SHOW_ACCOUNT)
  async userInfo(@UserId() userId: string): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(userId));
  }

  @Get('v1/users/git-info')
  @ApiRoute('get_current_user_git_info_', SHOW_ACCOUNT.summary, SHOW_ACCOUNT)
  async gitInfo(@UserId() userId: string): Promise<GitUserDto> {
    return toGitUserDto(await this.providers.findAccount(userId));
  }
}
