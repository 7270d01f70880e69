import { Injectable } from '@nestjs/common';
import { GitProviderError } from './git-provider.error.js';
import type { GitProvider } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { ProviderType } from './git-provider.types.js';
import { ProviderTokensReader, type StoredCredential } from './tokens/provider-tokens.reader.js';

/** Where a repository is, and the user's token for it. */
export interface RepositoryCredential {
  provider: ProviderType;
  /** Null: the user has none for the provider. */
  credential: StoredCredential | null;
}

/** Finds the token that goes with a repository. */
@Injectable()
export class RepositoryCredentials {
  constructor(
    private readonly reader: ProviderTokensReader,
    private readonly registry: GitProviderRegistry,
  ) {}

  /**
   * @param provider null: the first of the user's providers where a repository can have such a name, else GitHub
   * @param repository `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`
   */
  async choose(
    userId: string,
    provider: ProviderType | null,
    repository: string,
  ): Promise<RepositoryCredential> {
    const credentials = await this.reader.list(userId);
    const credential = credentials.find((candidate) =>
      provider === null ? this.canHave(candidate, repository) : candidate.provider === provider,
    );
    return { provider: provider ?? credential?.provider ?? 'github', credential: credential ?? null };
  }

  /** @throws GitProviderError `unsupported` for enterprise_sso that is not configured (any more) */
  adapterFor({ provider, credential }: RepositoryCredential): GitProvider {
    return this.registry.providerFor(provider, credential?.host ?? null);
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
