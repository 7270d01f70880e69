import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { sampleRealm, startFakeKeycloak } from './fakes/fake-keycloak.js';
import type { FakeServer } from './fakes/fake-server.js';
import { createTestApp, type TestApp } from './support/create-test-app.js';
import { startGitHosts, type GitHosts } from './support/git-hosts.js';

const TASKS = '/api/user/suggested-tasks';

describe('GET /api/user/suggested-tasks with enterprise_sso', () => {
  let hosts: GitHosts;
  let keycloak: FakeServer;
  let app: TestApp;

  afterEach(async () => {
    await app.close();
    await Promise.all([hosts.close(), keycloak.close()]);
  });

  const start = async (
    kind: 'github' | 'gitlab',
    ssoHost: (hosts: GitHosts) => string | null,
    environment: (hosts: GitHosts) => Record<string, string> = () => ({}),
  ): Promise<{ accessToken: string }> => {
    hosts = await startGitHosts();
    const realm = sampleRealm(hosts.worlds[kind].token);
    keycloak = await startFakeKeycloak(realm);
    const host = ssoHost(hosts);
    app = await createTestApp({
      ...hosts.environment,
      ENTERPRISE_SSO_ISSUER: `${keycloak.origin}/realms/main`,
      ENTERPRISE_SSO_ALIAS: realm.alias,
      ENTERPRISE_SSO_KIND: kind,
      ...(host !== null && { ENTERPRISE_SSO_HOST: host }),
      ...environment(hosts),
    });
    return { accessToken: realm.accessTokens[0] ?? '' };
  };

  it.each<['github' | 'gitlab', string, (hosts: GitHosts) => string | null]>([
    ['github', 'no host', () => null],
    ['github', 'the public name', () => 'github.com'],
    ['github', 'the public name, spelled differently', () => 'https://GitHub.com/'],
    ['github', 'the server of GITHUB_API_URL', ({ github }) => github.origin],
    ['gitlab', 'the public name', () => 'gitlab.com'],
    ['gitlab', 'the server of GITLAB_API_URL', ({ gitlab }) => `${gitlab.origin}/`],
  ])('shows work of the same %s once: %s', async (kind, _name, ssoHost) => {
    const { accessToken } = await start(kind, ssoHost);
    await request(app.url)
      .post('/api/add-git-providers')
      .set(app.user.headers)
      .send({
        provider_tokens: {
          [kind]: hosts.tokens.provider_tokens[kind],
          enterprise_sso: { token: accessToken },
        },
      })
      .expect(200);

    const { headers, status } = await request(app.url).get(TASKS).set(app.user.headers);

    expect(status).toBe(200);
    expect(headers['x-provider-status']).toBe(`${kind};status=ok;count=7, enterprise_sso;status=ok;count=0`);
  });
});
