import { Controller, Get, Injectable, Logger } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { UserId } from '../auth/auth.decorators.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { OrNull } from '@slipway/api/openapi/responses.js';
import { gitProviderProblem, INVALID_TOKEN, noGitProvider } from './git-provider-problem.js';
import { GitProviderError, PROVIDER_TYPES, type ProviderUser } from '@slipway/git-providers/git-provider.js';
import { ProviderCalls, ProviderReader } from './provider-reader.js';
import { TokenRenewals } from './tokens/token-renewals.js';

class GitUserDto {
  @ApiProperty({ description: 'As the provider writes it.', example: '583231' }) id: string;
  @ApiProperty({ example: 'octocat' }) login: string;
  @ApiProperty({ example: 'https://avatars.example.com/u/583231' }) avatar_url: string;
  @OrNull('Example Ltd') company: string | null;
  @OrNull('The Octocat') name: string | null;
  @OrNull('octocat@example.com') email: string | null;
}

function toGitUserDto({ id, login, avatarUrl, company, name, email }: ProviderUser): GitUserDto {
  return { id, login, avatar_url: avatarUrl, company, name, email };
}

const ACCOUNT_TIMEOUT_MS = 12_000;

@Injectable()
export class GitProvidersService {
  private readonly logger = new Logger(GitProvidersService.name);

  constructor(
    private readonly credentials: TokenRenewals,
    private readonly readers: ProviderReader,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * The account at the user's first provider in the order of `PROVIDER_TYPES`.
   * @throws DomainError no_git_provider without a token, else what the provider's failure means
   */
  async findAccount(userId: string): Promise<ProviderUser> {
    const [credential] = await this.credentials.current(userId);
    if (!credential) {
      throw noGitProvider();
    }
    const { provider } = credential;
    try {
      const adapter = await this.readers.readerFor(userId, credential);
      const call = this.calls.withStored(ACCOUNT_TIMEOUT_MS, userId, credential);
      return await adapter.getUser(call);
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('failed to read the account at a git provider', { provider, code: error.code });
      throw gitProviderProblem(provider, error);
    }
  }
}

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
