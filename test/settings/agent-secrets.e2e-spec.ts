import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ProviderTokenRepository } from '../../src/git-providers/tokens/provider-token.repository.js';
import { type AgentSecret, AgentSecretsReader } from '../../src/settings/secrets/agent-secrets.reader.js';
import { keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

describe('AgentSecretsReader', () => {
  const open: { close(): Promise<void> }[] = [];
  const { hosts, app } = useGitHosts();
  let user: TestUser;
  let reader: AgentSecretsReader;

  beforeEach(async () => {
    user = await app.createUser();
    reader = app.app.get(AgentSecretsReader);
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });

  /** The one of another operator. */
  async function start(environment: Record<string, string>): Promise<TestApp> {
    const other = await createTestApp({ ...hosts.environment, ...environment }, app.databaseUrl);
    open.push(other);
    reader = other.app.get(AgentSecretsReader);
    return other;
  }

  async function secrets(): Promise<Map<string, AgentSecret>> {
    return reader.forUser(user.id, await app.app.get(ProviderTokenRepository).list(user.id), () => true);
  }

  async function storeSecret(secret: object, owner = user): Promise<void> {
    await app.as(owner).post('/api/secrets', secret).expect(201);
  }

  it('gives custom secrets and git tokens under their names', async () => {
    await storeSecret({ name: 'DEPLOY_KEY', value: 'deploy-value', description: 'For deployments' });
    await new TokensClient(app, user).post(hosts.tokens);
    await storeSecret({ name: 'FOREIGN', value: 'foreign-value' }, await app.createUser());

    expect(Object.fromEntries(await secrets())).toEqual({
      DEPLOY_KEY: { value: 'deploy-value', description: 'For deployments' },
      GITHUB_TOKEN: { value: hosts.worlds.github.token, description: 'Token of the git provider github' },
      GITLAB_TOKEN: { value: hosts.worlds.gitlab.token, description: 'Token of the git provider gitlab' },
      BITBUCKET_TOKEN: {
        value: hosts.worlds.bitbucket.token,
        description: 'Token of the git provider bitbucket',
      },
    });
    expect((await reader.describe(user.id)).map(({ name }) => name)).toEqual([
      'BITBUCKET_TOKEN',
      'DEPLOY_KEY',
      'GITHUB_TOKEN',
      'GITLAB_TOKEN',
    ]);
    expect(await reader.find(user.id, 'GITHUB_TOKEN')).toBe(hosts.worlds.github.token);
    expect(await reader.find(user.id, 'github_token')).toBe(hosts.worlds.github.token);
    expect(await reader.find(user.id, 'FOREIGN')).toBeNull();
  });

  it('prefers a custom secret of the same name', async () => {
    await new TokensClient(app, user).post(hosts.tokens);
    await storeSecret({ name: 'GITHUB_TOKEN', value: 'my-own-token' });

    expect((await secrets()).get('GITHUB_TOKEN')).toEqual({
      value: 'my-own-token',
      description: null,
    });
    expect(await reader.find(user.id, 'GITHUB_TOKEN')).toBe('my-own-token');
    expect(await reader.find(user.id, 'github_token')).toBe('my-own-token');
  });

  it('keeps git tokens back where the operator says so', async () => {
    await start({ AGENT_EXPOSE_GIT_TOKENS: 'false' });
    await new TokensClient(app, user).post(hosts.tokens);
    await storeSecret({ name: 'DEPLOY_KEY', value: 'deploy-value' });

    expect([...(await secrets()).keys()]).toEqual(['DEPLOY_KEY']);
    expect(await reader.describe(user.id)).toEqual([{ name: 'DEPLOY_KEY', description: null }]);
    expect(await reader.find(user.id, 'GITHUB_TOKEN')).toBeNull();
    expect(await reader.find(user.id, 'github_token')).toBeNull();
  });

  it('gives the token behind enterprise_sso by the kind of its server, and goes without it when it is not told', async () => {
    const realm = sampleRealm(hosts.worlds.gitlab.token);
    const keycloak = await startFakeKeycloak(realm);
    open.push(keycloak);
    const other = await start({
      ENTERPRISE_SSO_ISSUER: `${keycloak.origin}/realms/main`,
      ENTERPRISE_SSO_ALIAS: realm.alias,
      ENTERPRISE_SSO_KIND: 'gitlab',
      ENTERPRISE_SSO_HOST: hosts.gitlab.origin,
    });
    await new TokensClient(other, user).postTokens({
      enterprise_sso: { token: keycloakToken('Bearer', 'first') },
    });

    expect(await reader.find(user.id, 'GITLAB_TOKEN')).toBe(realm.forgeToken);
    expect((await secrets()).get('GITLAB_TOKEN')?.value).toBe(realm.forgeToken);

    realm.linked = false;
    other.clock.advance(600_000);

    expect([...(await secrets()).keys()]).toEqual([]);
    await expect(reader.find(user.id, 'GITLAB_TOKEN')).rejects.toMatchObject({
      code: 'invalid_git_token',
    });
  });
});
