import { afterAll, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import { BitbucketDataCenterProvider } from './bitbucket-data-center/bitbucket-data-center.provider.js';
import { BitbucketProvider } from './bitbucket/bitbucket.provider.js';
import { GithubProvider } from './github/github.provider.js';
import { GitlabProvider } from './gitlab/gitlab.provider.js';

const http = new GuardedHttpClient({
  allowlist: HostAllowlist.parse([]),
  maxResponseBytes: 1_000,
  timeoutMs: 1_000,
});

function at<T>(
  Provider: new (client: GuardedHttpClient, options: { apiUrl: string; cloneUrl: string }) => T,
) {
  return (apiUrl: string): T => new Provider(http, { apiUrl, cloneUrl: 'https://git.example.com' });
}

const github = at(GithubProvider);
const gitlab = at(GitlabProvider);
const bitbucket = at(BitbucketProvider);
const dataCenter = at(BitbucketDataCenterProvider)('https://api.example.com');

afterAll(async () => {
  await http.close();
});

describe('apiGuide', () => {
  it.each([
    [github('https://api.github.com'), null, 'https://api.github.com'],
    [github('https://git.example.com/api/v3'), 'git.example.com', 'https://git.example.com/api/v3'],
    [gitlab('https://gitlab.com/api'), null, 'https://gitlab.com/api/v4'],
    [gitlab('https://gitlab.com/api'), 'git.example.com/gitlab', 'https://git.example.com/gitlab/api/v4'],
    [bitbucket('https://api.bitbucket.org/2.0'), null, 'https://api.bitbucket.org/2.0'],
    [dataCenter, 'git.example.com/ctx', 'https://git.example.com/ctx/rest/api/1.0'],
  ])('%# at %s: %s', (provider, host, expected) => {
    expect(provider.apiGuide(host, 'owner/name', 7).apiUrl).toBe(expected);
  });
});

// A token of a person and one of enterprise_sso may be for the same server: their work is shown once.
describe('serverOf', () => {
  it.each([
    ['GitHub', github('https://git.example.com/api/v3'), null, 'https://git.example.com'],
    ['an Enterprise Server', github('https://api.github.com'), 'git.example.com', 'https://git.example.com'],
    ['GitLab', gitlab('https://gitlab.com/api'), null, 'https://gitlab.com/api'],
    [
      'one below a path',
      gitlab('http://127.0.0.1:9102/api'),
      'http://127.0.0.1:9102/root',
      'http://127.0.0.1:9102/root/api',
    ],
    ['Bitbucket', bitbucket('https://api.bitbucket.org/2.0'), null, 'https://api.bitbucket.org/2.0'],
    ['Data Center', dataCenter, 'git.example.com/ctx', 'https://git.example.com/ctx'],
  ] as const)('%s: %s', (_name, provider, host, server) => {
    expect(provider.serverOf(host)).toBe(server);
  });
});

describe('workPolicy', () => {
  it.each([
    [github('https://api.github.com'), 60_000, 15_000, 50],
    [gitlab('https://gitlab.com/api'), 60_000, 15_000, 50],
    [bitbucket('https://api.bitbucket.org/2.0'), 120_000, 120_000, 20],
    [dataCenter, 120_000, 120_000, 20],
  ])('%#: fresh for %d ms, %d ms while computing, %d change requests', (provider, ...expected) => {
    const { freshMs, freshWhileComputingMs, maxChangeRequests } = provider.workPolicy;
    expect([freshMs, freshWhileComputingMs, maxChangeRequests]).toEqual(expected);
  });
});
