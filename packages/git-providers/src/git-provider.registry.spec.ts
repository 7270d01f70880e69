import { afterAll, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import { BitbucketDataCenterProvider } from './bitbucket-data-center/bitbucket-data-center.provider.js';
import { BitbucketProvider } from './bitbucket/bitbucket.provider.js';
import { GitProviderError } from './git-provider.js';
import { type GitProviderAdapters, GitProviderRegistry } from './git-provider.registry.js';
import { GithubProvider } from './github/github.provider.js';
import { GitlabProvider } from './gitlab/gitlab.provider.js';

const http = new GuardedHttpClient({
  allowlist: HostAllowlist.parse([]),
  maxResponseBytes: 1_000,
  timeoutMs: 1_000,
});
afterAll(() => http.close());

const urls = { apiUrl: 'https://api.example.com', cloneUrl: 'https://git.example.com' };
const github = new GithubProvider(http, urls);
const gitlab = new GitlabProvider(http, urls);
const cloud = new BitbucketProvider(http, urls);
const dataCenter = new BitbucketDataCenterProvider(http, urls);
const sso = new GitlabProvider(http, urls);

const adapters: GitProviderAdapters = {
  servers: {
    github: () => Promise.resolve(github),
    gitlab: () => Promise.resolve(gitlab),
    bitbucket: () => Promise.resolve(cloud),
    bitbucket_dc: () => Promise.resolve(dataCenter),
  },
  enterpriseSso: () => Promise.resolve(sso),
};

describe('GitProviderRegistry', () => {
  it.each([
    ['github', null, github],
    ['github', 'github.example.com', github],
    ['gitlab', null, gitlab],
    ['gitlab', 'gitlab.example.com/root', gitlab],
    ['bitbucket', null, cloud],
    ['bitbucket', 'git.example.com/context', dataCenter],
    ['enterprise_sso', null, sso],
  ] as const)('finds the adapter for %s at %s', async (provider, host, adapter) => {
    expect(await new GitProviderRegistry(adapters).providerFor(provider, host)).toBe(adapter);
  });

  it('refuses enterprise_sso that is not configured', async () => {
    const registry = new GitProviderRegistry({ ...adapters, enterpriseSso: null });
    expect(registry.usable).toEqual(['github', 'gitlab', 'bitbucket']);
    await expect(registry.providerFor('enterprise_sso', null)).rejects.toThrow(
      new GitProviderError('unsupported'),
    );
  });
});
