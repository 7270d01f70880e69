import { Injectable, Logger } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import { GitProviderError } from './git-provider.error.js';
import { gitProviderProblem } from './git-provider-problem.js';
import type { NewChangeRequest, OpenedChangeRequest, ProviderType } from './git-provider.types.js';
import { ProviderCalls } from './provider-calls.js';
import { RepositoryCredentials } from './repository-credentials.js';

/** Four requests at most, each with a deadline of its own. Agents wait for a minute. */
const DEADLINE_MS = 45_000;

/** Opens pull and merge requests with users' tokens. */
@Injectable()
export class ChangeRequestsService {
  private readonly logger = new Logger(ChangeRequestsService.name);

  constructor(
    private readonly credentials: RepositoryCredentials,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * Opens one, or answers the one that is open for the same branches already.
   *
   * @param provider null: as `RepositoryCredentials.choose` says
   * @throws DomainError no_git_provider without a token, else what the provider's failure or refusal means
   */
  async open(
    userId: string,
    provider: ProviderType | null,
    request: NewChangeRequest,
  ): Promise<OpenedChangeRequest> {
    const chosen = await this.credentials.choose(userId, provider, request.repository);
    const { credential } = chosen;
    if (!credential) {
      throw new DomainError(
        'conflict',
        'no_git_provider',
        `There is no ${chosen.provider} token: store one with POST /api/add-git-providers.`,
      );
    }
    try {
      return await this.credentials
        .adapterFor(chosen)
        .openChangeRequest(credential, request, this.calls.within(DEADLINE_MS, userId, credential));
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('git provider failed', { provider: chosen.provider, code: error.code });
      throw gitProviderProblem(chosen.provider, error);
    }
  }
}
