import { Injectable } from '@nestjs/common';
import { GitProviderError } from './git-provider.error.js';
import { gitProviderProblem } from './git-provider-problem.js';
import type { GitCredential, ProviderType } from './git-provider.types.js';
import { ProviderCalls } from './provider-calls.js';
import { RepositoryCredentials } from './repository-credentials.js';

/** How git gets at a repository. */
export interface CloneAccess {
  /** Where the repository is, also when nobody said. */
  provider: ProviderType;
  /** http or https, without credentials. */
  url: string;
  /** Null: anonymously, as the user has no token for the provider. */
  credential: GitCredential | null;
}

/** Asking Keycloak, or Data Center for the user's name. */
const DEADLINE_MS = 12_000;

/** Tells how git clones, fetches and pushes a user's repositories. */
@Injectable()
export class CloneAccessService {
  constructor(
    private readonly credentials: RepositoryCredentials,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * @param provider null: the first of the user's providers where a repository can have such a name, else GitHub
   * @param repository `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`, as users type it
   * @throws DomainError a sentence for people: a name that no repository has, a sign-in that has ended, a provider that
   *   gives no answer
   */
  async find(userId: string, provider: ProviderType | null, repository: string): Promise<CloneAccess> {
    const chosen = await this.credentials.choose(userId, provider, repository);
    const { credential } = chosen;
    try {
      const adapter = this.credentials.adapterFor(chosen);
      const url = adapter.cloneUrl(credential?.host ?? null, repository);
      return {
        provider: chosen.provider,
        url,
        credential: credential
          ? await adapter.gitCredential(credential, this.calls.within(DEADLINE_MS, userId, credential))
          : null,
      };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(chosen.provider, error) : error;
    }
  }
}
