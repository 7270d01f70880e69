import { Injectable, Logger } from '@nestjs/common';
import { gitProviderProblem, noGitProvider } from './git-provider-problem.js';
import { GitProviderError, type ProviderUser } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import { ProviderCalls } from './provider-reader.js';
import { ProviderTokenRepository } from './tokens/provider-token.repository.js';

const ACCOUNT_TIMEOUT_MS = 12_000;

@Injectable()
export class GitProvidersService {
  private readonly logger = new Logger(GitProvidersService.name);

  constructor(
    private readonly credentials: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * The account at the user's first provider in the order of `PROVIDER_TYPES`.
   * @throws DomainError no_git_provider without a token, else what the provider's failure means
   */
  async findAccount(userId: string): Promise<ProviderUser> {
    const [credential] = await this.credentials.list(userId);
    if (!credential) {
      throw noGitProvider();
    }
    const { provider, host } = credential;
    try {
      const adapter = await this.registry.providerFor(provider, host);
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
