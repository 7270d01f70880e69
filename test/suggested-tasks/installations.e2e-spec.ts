import { beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { APP_PERMISSIONS, githubApp } from '../support/github-app.js';
import { TokensClient } from '../support/tokens-client.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const TASKS = '/api/user/suggested-tasks';

describe('what installations of the GitHub App find for a user without a token', () => {
  const { app: github, environment } = githubApp();
  let user: TestUser;
  let login: string;
  let owners: string[];

  const { hosts, app } = useGitHosts(({ worlds }) => {
    worlds.github.app = github;
    login = worlds.github.user.login;
    owners = [...new Set(worlds.github.repositories.map(({ name }) => name.split('/')[0] ?? ''))];
    github.now = () => app.clock.now();
    return environment;
  });
  beforeEach(async () => {
    hosts.clearFaults();
    app.clock.advance(2 * 3_600_000);
    github.installations = owners.map((owner, index) => ({
      id: 80 + index,
      owner,
      permissions: { ...APP_PERMISSIONS },
    }));
    user = await app.createUser();
  });

  const standIn = async (entry: object = {}, who = user): Promise<void> => {
    const { status } = await new TokensClient(app, who).postTokens({
      github: { installation: true, ...entry },
    });
    expect(status).toBe(200);
  };
  const get = async (path: string, who = user): Promise<request.Response> => await app.as(who).get(path);

  it('is what a token of that user finds, of all installations together', async () => {
    await standIn({ login });
    const other = await app.createUser();
    await new TokensClient(app, other).post({
      provider_tokens: { github: { token: hosts.worlds.github.token } },
    });
    const [own, usual] = [await get(TASKS), await get(TASKS, other)];
    expect(own.status).toBe(200);
    expect(own.body.length).toBeGreaterThan(0);
    expect(own.body).toEqual(usual.body);
    expect(own.headers['x-provider-status']).toMatch(/^github;status=ok;count=\d+/);
  });

  it('is nothing of what another owner has, and says which part is missing', async () => {
    await standIn({ login });
    const [first = '', ...others] = owners;
    github.installations = github.installations.filter(({ owner }) => owner === first);
    const { body } = await get(TASKS);
    for (const { repo: name } of body as { repo: string }[]) {
      expect(others).not.toContain(name.split('/')[0]);
    }
  });

  it('is nothing without a login, with words and a status of its own', async () => {
    await standIn();
    const { status, body } = await get(TASKS);
    expect(status).toBe(502);
    expect(body.errors).toMatchObject([
      { provider: 'github', code: 'needs_login', detail: expect.stringMatching(/`login`/) },
    ]);
    await new TokensClient(app, user).post({
      provider_tokens: { gitlab: { token: hosts.worlds.gitlab.token } },
    });
    const beside = await get(TASKS);
    expect(beside.status).toBe(200);
    expect(beside.headers['x-provider-status']).toMatch(/github;status=error;code=needs_login/);
  });

  it('goes by the login that the issuer says rather than by the one that the user says', async () => {
    const issuer = 'https://sso.example.com';
    const other = await createTestApp(
      { ...hosts.environment, ...environment, OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'a' },
      app.databaseUrl,
    );
    await standIn({ login: 'nobody-of-that-name' });
    await app.dataSource.query(
      `INSERT INTO user_identities (id, user_id, issuer, subject, email_verified, has_role, last_seen_at, git)
       VALUES (gen_random_uuid(), $1::uuid, $2, $1::text, true, true, $3, $4)`,
      [user.id, issuer, new Date(other.clock.now()), JSON.stringify({ login, groups: [] })],
    );
    const { status } = await other.as(user).get(TASKS);
    await other.close();
    expect(status).toBe(200);
  });

  it('is nothing of what was found before once the user may not be stood in for', async () => {
    const lists = '/api/v1/git/repositories/search?provider=github';
    await standIn({ login });
    expect((await get(TASKS)).body.length).toBeGreaterThan(0);
    expect((await get(lists)).body.items.length).toBeGreaterThan(0);
    await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [user.id]);
    const after = [await get(TASKS), await get(lists)];
    expect(JSON.stringify(after.map(({ body }) => body))).not.toContain('octo/app');
    expect(after.map(({ status }) => status >= 400)).toEqual([true, true]);
  });

  it('has the repositories, their branches, and the account of the login', async () => {
    await standIn({ login });
    const repositories = await get('/api/v1/git/repositories/search?provider=github');
    expect(repositories.status).toBe(200);
    const names = (repositories.body.items as { full_name: string }[]).map(({ full_name: name }) => name);
    expect(names).toContain('octo/app');
    const branches = await get('/api/v1/git/branches/search?provider=github&repository=octo/app&query=');
    expect(branches.body.items.length).toBeGreaterThan(0);
    const account = await get('/api/v1/users/git-info');
    expect(account.body).toMatchObject({ login });
    const installations = await get('/api/v1/git/installations/search?provider=github');
    expect(installations.body.items).toEqual(github.installations.map(({ id }) => String(id)));
  });
});
