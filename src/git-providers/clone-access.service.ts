import { Injectable } from '@nestjs/common';
import { GitProviderError } from './git-provider.error.js';
import { gitProviderProblem } from './git-provider-problem.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { GitCredential, ProviderType } from './git-provider.types.js';
import { ProviderCalls } from './provider-calls.js';
import { ProviderTokensReader, type StoredCredential } from './tokens/provider-tokens.reader.js';

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
    private readonly reader: ProviderTokensReader,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * @param provider null: the first of the user's providers where a repository can have such a name, else GitHub
   * @param repository `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`, as users type it
   * @throws DomainError a sentence for people: a name that no repository has, a sign-in that has ended, a provider that
   *   gives no answer
   */
  async find(userId: string, provider: ProviderType | null, repository: string): Promise<CloneAccess> {
    const credentials = await this.reader.list(userId);
    const credential =
      provider === null
        ? credentials.find((candidate) => this.canHave(candidate, repository))
        : credentials.find((candidate) => candidate.provider === provider);
    const chosen = provider ?? credential?.provider ?? 'github';
    try {
      const host = credential?.host ?? null;
      const adapter = this.registry.providerFor(chosen, host);
      const url = adapter.cloneUrl(host, repository);
      return {
        provider: chosen,
        url,
        credential: credential
          ? await adapter.gitCredential(credential, this.calls.within(DEADLINE_MS, userId, credential))
          : null,
      };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(chosen, error) : error;
    }
  }

  /** Only GitLab has names of more than two parts; enterprise_sso may not be configured any more. */
  private canHave({ provider, host }: StoredCredential, repository: string): boolean {
    try {
      this.registry.providerFor(provider, host).cloneUrl(host, repository);
      return true;
    } catch (error) {
      if (error instanceof GitProviderError) {
        return false;
      }
      throw error;
    }
  }
}
