import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import { until } from '../support/until.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const PATIENT = { GIT_REQUEST_TIMEOUT_SECONDS: '60', SUGGESTED_TASKS_TIMEOUT_SECONDS: '90' };

interface Page {
  items: (string | { name: string } | { full_name: string })[];
  next_page_id: string | null;
}

function nameOf(item: Page['items'][number]): string {
  return typeof item === 'string' ? item : 'name' in item ? item.name : item.full_name;
}

describe('/api/v1/git', () => {
  let user: TestUser;

  const { hosts, app } = useGitHosts(PATIENT);

  beforeEach(async () => {
    hosts.clearFaults();
    user = await app.createUser();
    await request(app.url).post('/api/add-git-providers').set(user.headers).send(hosts.tokens).expect(200);
    hosts.clearFaults();
  });

  const get = (path: string, owner = user): request.Test =>
    request(app.url).get(`/api/v1/git/${path}`).set(owner.headers);
  /** How many pages there are, and what is on them, in order. */
  const namesOfPages = async (list: string): Promise<(number | string)[]> => {
    const names: string[] = [];
    let pages = 0;
    let next: string | null = '';
    while (next !== null && pages < 10) {
      const page: Page = (await get(`${list}&page_id=${encodeURIComponent(next)}`).expect(200)).body;
      names.push(...page.items.map(nameOf));
      next = page.next_page_id;
      pages += 1;
    }
    return [pages, ...names.toSorted()];
  };
  const requests = (): number =>
    hosts.github.requests.length + hosts.gitlab.requests.length + hosts.bitbucket.requests.length;

  it('refuses at once what is beyond the share of one user, and answers others', async () => {
    const other = await app.createUser();
    await request(app.url).post('/api/add-git-providers').set(other.headers).send(hosts.tokens).expect(200);
    const isHeld = { match: (sent: FakeRequest) => sent.query.get('q')?.includes('held') ?? false };
    hosts.github.injectFault({ kind: 'hang' }, isHeld);
    const search = (text: string, owner = user): request.Test =>
      get(`repositories/search?provider=github&query=${text}`, owner);
    const held = Array.from({ length: 32 }, (_, index) => search(`octo/held${index}`).then(() => 'answered'));
    await until(() => hosts.github.requests.filter(isHeld.match).length === 32);

    const { body, headers } = await search('octo/held').expect(429);
    expect(body).toMatchObject({ code: 'rate_limited', detail: expect.stringContaining('You have') });
    expect(headers['retry-after']).toBe('2');
    const tasks = await request(app.url).get('/api/user/suggested-tasks').set(user.headers).expect(200);
    expect(tasks.headers['x-provider-status']).toContain(
      'github;status=error;code=rate_limited;retry_after=2',
    );
    await search('octo/app', other).expect(200);

    hosts.clearFaults();
    hosts.github.hangUp();
    expect(await Promise.all(held)).toHaveLength(32);
  });

  describe('repositories/search', () => {
    it('lists repositories', async () => {
      const { body, headers, status } = await get('repositories/search?provider=bitbucket&query=app');

      expect(status).toBe(200);
      expect(body).toEqual({
        items: [
          {
            id: expect.any(String),
            full_name: 'octo/app',
            git_provider: 'bitbucket',
            is_public: false,
            stargazers_count: null,
            link_header: null,
            pushed_at: '2026-11-20T16:45:12.000Z',
            owner_type: 'organization',
            main_branch: 'main',
          },
        ],
        next_page_id: null,
      });
      expect(headers['x-provider-status']).toBe('bitbucket;status=ok;count=1');
    });

    it('takes the address of a repository for its name', async () => {
      const query = encodeURIComponent('https://github.com/octo/library.git');

      const { body } = await get(`repositories/search?provider=github&query=${query}`);

      expect(body.items.map(({ full_name }: { full_name: string }) => full_name)).toEqual(['octo/library']);
    });

    it('narrows down to a workspace', async () => {
      const installations = await get('installations/search?provider=bitbucket');
      const { body } = await get('repositories/search?provider=bitbucket&installation_id=octo');

      expect(installations.body).toEqual({ items: ['mona', 'octo'], next_page_id: null });
      expect(body.items.map(({ full_name }: { full_name: string }) => full_name)).toEqual([
        'octo/app',
        'octo/library',
      ]);
      expect((await get('installations/search?provider=gitlab')).body.items).toEqual([]);
    });

    it('says that there is no such installation', async () => {
      const { body, status } = await get('repositories/search?provider=github&installation_id=nobody');

      expect([status, body.code, body.detail]).toEqual([
        404,
        'not_found',
        'At github, there is no such installation, or the token cannot see it.',
      ]);
    });
  });

  describe('branches/search', () => {
    it('lists the branches of a repository', async () => {
      const { body } = await get('branches/search?provider=gitlab&repository=octo/app&query=');

      expect(body.next_page_id).toBeNull();
      expect(body.items.map(({ name }: { name: string }) => name).toSorted()).toEqual([
        'fix/it',
        'main',
        'release',
      ]);
      expect(body.items[0]).toEqual({
        name: expect.any(String),
        commit_sha: expect.stringMatching(/^[0-9a-f]{40}$/),
        protected: expect.any(Boolean),
        last_push_date: '2026-11-20T16:45:12.000Z',
      });
    });

    it('answers 404 for a repository that is not there', async () => {
      const { body } = await get('branches/search?provider=github&repository=octo/none&query=').expect(404);

      expect(body.detail).toBe('At github, there is no such repository, or the token cannot see it.');
    });

    it('answers 404 for what is no name, and asks nobody', async () => {
      await get('branches/search?provider=github&repository=../user&query=').expect(404);

      expect(requests()).toBe(0);
    });
  });

  it.each([
    ['repositories/search?provider=gitlab&limit=2', ['mona/notes', 'octo/app', 'octo/library']],
    ['branches/search?provider=bitbucket&repository=octo/app&query=&limit=2', ['fix/it', 'main', 'release']],
    ['installations/search?provider=bitbucket&limit=1', ['mona', 'octo']],
  ])('pages through %s', async (list, names) => {
    expect(await namesOfPages(list)).toEqual([2, ...names]);
  });

  describe('the cache', () => {
    const LIST = 'repositories/search?provider=gitlab';

    it('asks the provider once a minute for each question', async () => {
      await get(LIST).expect(200);
      await get(LIST).expect(200);
      expect(requests()).toBe(1);

      await get(`${LIST}&query=app`).expect(200);
      await get(`${LIST}&limit=1`).expect(200);
      expect(requests()).toBe(3);
    });

    it('serves what it has while the provider is down, and says so', async () => {
      await get(LIST).expect(200);
      hosts.gitlab.injectFault({ kind: 'status', status: 503 });
      app.clock.advance(11 * 60_000);

      const { body, headers } = await get(LIST).expect(200);

      expect(body.items).toHaveLength(3);
      expect(headers['x-provider-status']).toMatch(/^gitlab;status=stale;count=3;age=6[67]\d/);
    });

    it("is no other user's", async () => {
      await get(LIST).expect(200);
      const stranger = await app.createUser();

      const refused = await get(LIST, stranger).expect(401);
      expect(refused.body).toMatchObject({ code: 'no_git_provider', detail: 'No providers set.' });

      const body = { provider_tokens: { github: hosts.tokens.provider_tokens.github } };
      await request(app.url).post('/api/add-git-providers').set(stranger.headers).send(body).expect(200);
      const { detail } = (await get(LIST, stranger).expect(401)).body;
      expect(detail).toBe('There is no gitlab token: store one with POST /api/v1/secrets/git-providers.');
    });
  });

  it.each([
    'repositories/search?provider=gitlab',
    'branches/search?provider=gitlab&repository=octo/app&query=fix',
  ])('passes on what the host answers: %s', async (path) => {
    hosts.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });
    const response = await get(path);

    expect([response.status, response.body.code]).toEqual([429, 'rate_limited']);
    expect(response.headers['retry-after']).toBe('41');
    expect(response.text).not.toContain(hosts.worlds.gitlab.token);
  });

  it('tells the account under the name that V1 clients know', async () => {
    const { body } = await request(app.url).get('/api/v1/users/git-info').set(user.headers).expect(200);

    expect(body).toEqual((await request(app.url).get('/api/user/info').set(user.headers)).body);
    expect(body).toMatchObject({ login: 'mona', email: 'mona@example.com' });
  });
  describe('with a key for some repositories', () => {
    let limited: Record<string, string>;

    beforeEach(async () => {
      const { body } = await request(app.url)
        .post('/api/v1/api-keys')
        .set(user.headers)
        .send({ name: 'ci', repositories: ['github:octo/app', 'gitlab:octo/*'] })
        .expect(201);
      limited = { 'X-Session-API-Key': body.key };
    });

    const ask = (path: string): request.Test => request(app.url).get(path).set(limited);

    it('lists those, and their tasks', async () => {
      const all = (await get('repositories/search?provider=github').expect(200)).body.items.map(nameOf);
      expect(all.length).toBeGreaterThan(1);
      for (const path of ['/api/v1/git/repositories/search?provider=github', '/api/user/repositories']) {
        const { body } = await ask(path).expect(200);
        expect([path, [body.items ?? body].flat().map(nameOf)]).toEqual([path, ['octo/app']]);
      }
      const whole = await request(app.url).get('/api/user/suggested-tasks').set(user.headers).expect(200);
      const { body: tasks } = await ask('/api/user/suggested-tasks').expect(200);
      const { body: page } = await ask('/api/v1/git/suggested-tasks/search').expect(200);
      const isOne = ({ git_provider: provider, repo }: { git_provider: string; repo: string }): boolean =>
        (provider === 'github' && repo === 'octo/app') || (provider === 'gitlab' && repo.startsWith('octo/'));
      expect(tasks).toEqual(whole.body.filter(isOne));
      expect([tasks.length > 0, tasks.length < whole.body.length]).toEqual([true, true]);
      expect(page.items.every(isOne)).toBe(true);
      expect(page.items).toHaveLength(tasks.length);
    });

    it('lists branches of those', async () => {
      for (const [path, status] of [
        ['/api/v1/git/branches/search?provider=github&repository=octo/app&query=', 200],
        ['/api/v1/git/branches/search?provider=bitbucket&repository=octo/app&query=', 403],
        ['/api/v1/git/branches/search?provider=github&repository=octo/lib&query=', 403],
        ['/api/user/search/branches?selected_provider=gitlab&repository=octo/app&query=', 200],
        ['/api/user/search/branches?repository=octo/app&query=', 403],
        // The host has none of that name, and was asked.
        ['/api/user/repository/branches?repository=octo/lib', 404],
        ['/api/user/repository/branches?repository=acme/secret', 403],
      ] as const) {
        const { status: answered, body } = await ask(path);
        expect([path, answered]).toEqual([path, status]);
        expect(answered === 403 ? body.code : 'outside_repositories').toBe('outside_repositories');
      }
      await ask('/api/user/installations?provider=github').expect(403);
    });
  });
});
