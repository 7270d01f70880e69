import { GitProviderError, type GitProvider, type ProviderType } from './git-provider.js';

/** One adapter per kind of git host. */
export interface GitProviderAdapters {
  github: GitProvider;
  gitlab: GitProvider;
  bitbucketCloud: GitProvider;
  bitbucketDataCenter: GitProvider;
  /** Null unless the operator has configured it. */
  enterpriseSso: GitProvider | null;
}

/** Knows which adapter answers for a stored credential; nothing else chooses by provider. */
export class GitProviderRegistry {
  private readonly choose: Record<ProviderType, (host: string | null) => GitProvider | null>;
  /** The operator has configured enterprise_sso. */
  readonly enterpriseSsoConfigured: boolean;

  constructor(adapters: GitProviderAdapters) {
    this.enterpriseSsoConfigured = adapters.enterpriseSso !== null;
    this.choose = {
      github: () => adapters.github,
      gitlab: () => adapters.gitlab,
      // Bitbucket Cloud is at one address only, so a host means Data Center.
      bitbucket: (host) => (host === null ? adapters.bitbucketCloud : adapters.bitbucketDataCenter),
      enterprise_sso: () => adapters.enterpriseSso,
    };
  }

  /**
   * The adapter for a provider at a host.
   *
   * @param host canonical host of the credential, null for the provider's default address
   * @throws GitProviderError `unsupported` for enterprise_sso that is not configured (any more)
   */
  providerFor(provider: ProviderType, host: string | null): GitProvider {
    const adapter = this.choose[provider](host);
    if (!adapter) {
      throw new GitProviderError('unsupported');
    }
    return adapter;
  }
}
