import type { Clock } from '../common/clock.js';
import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import type { EnterpriseSsoConfig, GitConfig } from '../config/app-config.js';
import { BitbucketDataCenterProvider } from './bitbucket-data-center/bitbucket-data-center.provider.js';
import { BitbucketProvider } from './bitbucket/bitbucket.provider.js';
import { BrokerTokenCache } from './enterprise-sso/enterprise-sso.token-cache.js';
import { EnterpriseSsoProvider } from './enterprise-sso/enterprise-sso.provider.js';
import type { GitProvider } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import { GithubProvider } from './github/github.provider.js';
import { GitlabProvider } from './gitlab/gitlab.provider.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from './provider-http.js';

/** Builds every adapter from the configuration; `ssoHost` is the canonical host behind enterprise_sso. */
export function createGitProviderRegistry(
  http: GuardedHttpClient,
  config: GitConfig,
  ssoHost: string | null,
  clock: Clock,
): GitProviderRegistry {
  const timing: RetryTiming = { ...SYSTEM_RETRY_TIMING, now: () => clock.now() };
  const github = new GithubProvider(http, {
    apiUrl: config.githubApiUrl,
    cloneUrl: config.githubCloneUrl,
    timing,
  });
  const gitlab = new GitlabProvider(http, {
    apiUrl: config.gitlabApiUrl,
    cloneUrl: config.gitlabCloneUrl,
    timing,
  });
  const bitbucketDataCenter = new BitbucketDataCenterProvider(http, { timing });
  const behindSso: Record<EnterpriseSsoConfig['kind'], GitProvider> = {
    github,
    gitlab,
    bitbucket_dc: bitbucketDataCenter,
  };
  const sso = config.enterpriseSso;
  return new GitProviderRegistry({
    github,
    gitlab,
    bitbucketCloud: new BitbucketProvider(http, {
      apiUrl: config.bitbucketApiUrl,
      cloneUrl: config.bitbucketCloneUrl,
      timing,
    }),
    bitbucketDataCenter,
    enterpriseSso:
      sso &&
      new EnterpriseSsoProvider(
        http,
        behindSso[sso.kind],
        {
          issuer: sso.issuer,
          alias: sso.alias,
          host: ssoHost,
          apiVersion: sso.apiVersion,
          timing,
          ...(sso.clientId !== null && { clientId: sso.clientId }),
          ...(sso.clientSecret !== null && { clientSecret: sso.clientSecret }),
        },
        new BrokerTokenCache({ now: timing.now }),
      ),
  });
}
