import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { StandIns } from '../../src/git-providers/tokens/stand-ins.js';
import { FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import { githubApp } from '../support/github-app.js';
import { useTestApp } from '../support/use-test-app.js';

const ME = '/api/v1/users/me';

describe('what a token of the issuer says of a GitHub App', () => {
  let issuer: FakeOidcIssuer;
  beforeAll(async () => {
    issuer = await FakeOidcIssuer.start();
  });
  afterAll(() => issuer.server.close());

  const app = useTestApp(() => ({
    ...issuer.environment,
    ...githubApp().environment,
    GITHUB_APP_FOR: 'dev=octo/*,ops=octo/infra',
    OIDC_GITHUB_LOGIN_CLAIM: 'accounts.github',
  }));

  const seen = async (sub: string, claims: Record<string, unknown>): Promise<string> => {
    const token = await issuer.accessToken({ sub, email: `${sub}@example.com`, ...claims });
    const { body } = await request(app.url).get(ME).set('Authorization', `Bearer ${token}`).expect(200);
    return body.id as string;
  };
  const standIn = async (userId: string): Promise<unknown> =>
    await app.app.get(StandIns, { strict: false }).of(userId);
  const now = (): number => Math.floor(Date.now() / 1000);

  it('counts as long as no newer one says otherwise, and is all that is kept of its groups', async () => {
    const at = now();
    const github = { accounts: { github: 'octocat' } };
    const id = await seen('ada', { groups: ['dev', 'payroll'], iat: at - 60, ...github });
    expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/*'] });
    const [row] = await app.dataSource.query<{ git: unknown }[]>(
      'SELECT git FROM user_identities WHERE user_id = $1',
      [id],
    );
    const issued = new Date((at - 60) * 1000).toISOString();
    expect(row?.git).toEqual({ login: 'octocat', groups: ['dev'], issued_at: issued });

    await seen('ada', { groups: ['ops'], iat: at, ...github });
    expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/infra'] });
    await seen('ada', { groups: ['dev'], iat: at - 30, ...github });
    expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/infra'] });
    await seen('ada', { groups: [], iat: at + 1 });
    expect(await standIn(id)).toEqual({ login: null, repositories: [] });
  });

  it('is what it was where a token leaves the groups out for their number, and no login that cannot be one', async () => {
    const at = now();
    const id = await seen('bob', { groups: ['dev'], iat: at - 60, accounts: { github: 'a b' } });
    expect(await standIn(id)).toEqual({ login: null, repositories: ['octo/*'] });
    await seen('bob', { groups: undefined, hasgroups: true, iat: at });
    expect(await standIn(id)).toEqual({ login: null, repositories: ['octo/*'] });
  });

  it('is nothing any more of a user who was removed', async () => {
    const id = await seen('eve', { groups: ['dev'], iat: now(), accounts: { github: 'eve-cat' } });
    await request(app.url).delete(`/api/v1/users/${id}`).set(app.admin.headers).expect(204);
    const rows = await app.dataSource.query('SELECT * FROM user_identities WHERE user_id = $1', [id]);
    expect(rows).toMatchObject([{ groups: null, git: null }]);
    expect(JSON.stringify(rows)).not.toMatch(/eve-cat|dev/);
  });
});
