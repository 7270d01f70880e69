import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';

type Host = 'github' | 'gitlab' | 'bitbucket';

const IP_LIST =
  'Although you appear to have the correct authorization credentials, the `octo` organization has an IP allow list ' +
  'enabled, and your IP address is not permitted to access this resource.';
const TERMS =
  '403 Forbidden - You (@mona) must accept the Terms of Service in order to perform this action. Please access GitLab ' +
  'from a web browser to accept these terms.';

/** One of each host; the others, and what they mean, are in the table of `providerErrorFromResponse`. */
const REFUSALS: [Host, object | string, string][] = [
  ['github', { message: IP_LIST }, 'has an IP allow list enabled'],
  ['gitlab', { message: TERMS }, 'must accept the Terms of Service'],
  ['bitbucket', 'Access from this IP address is not allowed', 'this IP address'],
];

describe('a git host that says why it refuses', () => {
  let user: TestUser;

  const { hosts, app } = useGitHosts();

  beforeEach(async () => {
    hosts.clearFaults();
    user = await app.createUser();
  });

  const store = (host: Host): request.Test =>
    request(app.url)
      .post('/api/add-git-providers')
      .set(user.headers)
      .send({ provider_tokens: { [host]: { token: hosts.worlds[host].token } } });
  const tasks = (): request.Test => request(app.url).get('/api/user/suggested-tasks').set(user.headers);

  it.each(REFUSALS)('%s: %j', async (host, body, reason) => {
    hosts[host].injectFault({ kind: 'status', status: 403, body });

    const stored = await store(host).expect(200);
    const all = await tasks();

    const [warning] = stored.body.warnings;
    expect(warning).toMatchObject({ provider: host, code: 'blocked_by_policy' });
    expect(warning.detail).toContain('was stored but not verified: ');
    expect(warning.detail).toContain(reason);
    expect(all.body.errors).toEqual([
      expect.objectContaining({ provider: host, detail: expect.stringContaining(reason) }),
    ]);
  });

  it('is quoted beside the tasks of others, and where lists are asked for', async () => {
    await store('github').expect(200);
    await store('gitlab').expect(200);
    hosts.gitlab.injectFault({ kind: 'status', status: 403, body: { message: TERMS } });

    const { headers } = await tasks().expect(200);
    const list = await request(app.url)
      .get('/api/v1/git/repositories/search?provider=gitlab')
      .set(user.headers)
      .expect(502);

    expect(headers['x-provider-status']).toContain(
      `gitlab;status=error;code=blocked_by_policy;detail="${TERMS}"`,
    );
    expect(list.body.detail).toContain(TERMS);
  });

  it('is quoted where only a part is missing', async () => {
    await store('github').expect(200);
    const errors = [{ type: 'FORBIDDEN', path: ['viewer', 'recent', 'nodes', 0], message: IP_LIST }];
    const data = { viewer: { login: 'mona', recent: { nodes: [null] } } };
    hosts.github.injectFault(
      { kind: 'status', status: 200, body: { data, errors } },
      { match: ({ body }) => body.includes('query SuggestedTaskReposAndIssues') },
    );

    const { headers } = await tasks().expect(200);

    expect(headers['x-provider-status']).toContain(
      `github;status=partial;code=blocked_by_policy;detail="${IP_LIST}"`,
    );
  });

  it('is quoted when it takes the token for none', async () => {
    const body = { error: 'invalid_token', error_description: 'Token is expired. Create another one.' };
    hosts.gitlab.injectFault({ kind: 'status', status: 401, body });

    const refused = await store('gitlab').expect(401);

    expect(refused.body).toMatchObject({
      code: 'invalid_git_token',
      error: 'Invalid token. Please make sure it is a valid gitlab token.',
      reason: expect.stringContaining('Token is expired'),
    });
  });

  it('is quoted clean, short and without the token', async () => {
    const { token } = hosts.worlds.github;
    const text = `no,\r\n\u001b[31m ${token} "ünd" ${Buffer.from(token).toString('base64')}\u0000 ${'x'.repeat(5_000)}`;
    await store('github').expect(200);
    await store('gitlab').expect(200);
    hosts.github.injectFault({ kind: 'status', status: 403, body: { message: text } });

    const { headers } = await tasks().expect(200);
    const stored = await store('github').expect(200);

    const status = String(headers['x-provider-status']);
    expect(status).toMatch(/detail="no, \[31m \*\*\* \\"\?nd\\" \*\*\* x+\?"/);
    expect(status.length).toBeLessThan(600);
    expect(`${status} ${stored.text}`).not.toContain(token);
    expect(stored.body.warnings[0].detail.length).toBeLessThan(500);
  });

  it('says nothing in a page of a proxy', async () => {
    const body = `<html><body>${'Blocked by your firewall. '.repeat(10)}</body></html>`;
    hosts.github.injectFault({ kind: 'status', status: 403, headers: { 'content-type': 'text/html' }, body });

    const stored = await store('github').expect(200);

    expect(stored.body.warnings).toEqual([
      {
        provider: 'github',
        code: 'blocked_by_policy',
        detail:
          'The github token was stored but not verified: the provider refuses it, whatever its scopes are.',
      },
    ]);
  });
});
