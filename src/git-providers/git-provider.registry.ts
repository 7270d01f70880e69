import type { Clock } from '../common/clock.js';
import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import type { EnterpriseSsoConfig, GitConfig } from '../config/git-config.js';
import { GitProviderError, type GitProvider, type ProviderType } from './git-provider.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from './provider-http.js';

type LoadAdapter = () => Promise<GitProvider>;

/** One adapter per kind of git server. */
export interface GitProviderAdapters {
  github: LoadAdapter;
  gitlab: LoadAdapter;
  bitbucketCloud: LoadAdapter;
  bitbucketDataCenter: LoadAdapter;
  /** Null unless the operator has configured it. */
  enterpriseSso: LoadAdapter | null;
}

/** Knows which adapter a stored credential needs; nothing else chooses by provider. */
export class GitProviderRegistry {
  /** The operator has configured enterprise_sso. */
  readonly enterpriseSsoConfigured: boolean;
  private readonly choose: Record<ProviderType, (host: string | null) => LoadAdapter | null>;

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
  async providerFor(provider: ProviderType, host: string | null): Promise<GitProvider> {
    const load = this.choose[provider](host);
    if (!load) {
      throw new GitProviderError('unsupported');
    }
    return await load();
  }
}

/**
 * The registry of every adapter that the configuration allows. Each is loaded with the first call that needs it: the
 * schemas and octokit would add about 80 ms to every start.
 *
 * @param ssoHost canonical host behind enterprise_sso
 */
export function createGitProviderRegistry(
  http: GuardedHttpClient,
  config: GitConfig,
  ssoHost: string | null,
  clock: Clock,
): GitProviderRegistry {
  const timing: RetryTiming = { ...SYSTEM_RETRY_TIMING, now: () => clock.now() };
  const github = once(async () => {
    const { GithubProvider } = await import('./github/github.provider.js');
    const { githubApiUrl: apiUrl, githubCloneUrl: cloneUrl } = config;
    return new GithubProvider(http, { apiUrl, cloneUrl, timing });
  });
  const gitlab = once(async () => {
    const { GitlabProvider } = await import('./gitlab/gitlab.provider.js');
    const { gitlabApiUrl: apiUrl, gitlabCloneUrl: cloneUrl } = config;
    return new GitlabProvider(http, { apiUrl, cloneUrl, timing });
  });
  const bitbucketCloud = once(async () => {
    const { BitbucketProvider } = await import('./bitbucket/bitbucket.provider.js');
    const { bitbucketApiUrl: apiUrl, bitbucketCloneUrl: cloneUrl } = config;
    return new BitbucketProvider(http, { apiUrl, cloneUrl, timing });
  });
  const bitbucketDataCenter = once(async () => {
    const { BitbucketDataCenterProvider } =
      await import('./bitbucket-data-center/bitbucket-data-center.provider.js');
    return new BitbucketDataCenterProvider(http, { timing });
  });
  const behindSso: Record<EnterpriseSsoConfig['kind'], LoadAdapter> = {
    github,
    gitlab,
    bitbucket_dc: bitbucketDataCenter,
  };
  const sso = config.enterpriseSso;
  const enterpriseSso =
    sso &&
    once(async () => {
      const { EnterpriseSsoProvider } = await import('./enterprise-sso/enterprise-sso.provider.js');
      const { issuer, alias, apiVersion, clientId, clientSecret } = sso;
      return new EnterpriseSsoProvider(http, await behindSso[sso.kind](), {
        issuer,
        alias,
        host: ssoHost,
        apiVersion,
        timing,
        ...(clientId !== null && { clientId }),
        ...(clientSecret !== null && { clientSecret }),
      });
    });
  return new GitProviderRegistry({ github, gitlab, bitbucketCloud, bitbucketDataCenter, enterpriseSso });
}

function once(load: LoadAdapter): LoadAdapter {
  let loaded: Promise<GitProvider> | undefined;
  return () => (loaded ??= load());
}
