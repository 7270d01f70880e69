import { Injectable, Logger } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import { GitProviderError } from './git-provider.error.js';
import { gitProviderProblem } from './git-provider-problem.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { ProviderUser } from './git-provider.types.js';
import { ProviderCalls } from './provider-calls.js';
import { ProviderTokensReader } from './tokens/provider-tokens.reader.js';

const DEADLINE_MS = 12_000;

/** Tells who a user is at their git provider. */
@Injectable()
export class GitUserService {
  private readonly logger = new Logger(GitUserService.name);

  constructor(
    private readonly reader: ProviderTokensReader,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * The account at the first provider that the user has a token for, in the order of `PROVIDER_TYPES`.
   *
   * @throws DomainError no_git_provider without any token, else what the provider's failure means
   */
  async find(userId: string): Promise<ProviderUser> {
    const [credential] = await this.reader.list(userId);
    if (!credential) {
      throw new DomainError('unauthorized', 'no_git_provider', 'No providers set.');
    }
    try {
      return await this.registry
        .providerFor(credential.provider, credential.host)
        .getUser(credential, this.calls.within(DEADLINE_MS, userId, credential));
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('git provider failed', { provider: credential.provider, code: error.code });
      throw gitProviderProblem(credential.provider, error);
    }
  }
}
