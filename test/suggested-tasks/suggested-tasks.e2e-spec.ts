import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import request from 'supertest';
import { AppLogger } from '@slipway/api/logging/app-logger.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { providerTokenBinding } from '../../src/git-providers/tokens/provider-token.repository.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const TASKS = '/api/user/suggested-tasks';

/** A machine may be busy: only the test of hanging providers is to see a deadline pass. */
const PATIENT = { GIT_REQUEST_TIMEOUT_SECONDS: '60', SUGGESTED_TASKS_TIMEOUT_SECONDS: '90' };

interface Task {
  git_provider: string;
  task_type: string;
  repo: string;
  issue_number: number;
  title: string;
}

describe('GET /api/user/suggested-tasks', () => {
  let user: TestUser;

  const { hosts, app } = useGitHosts(PATIENT);

  beforeEach(async () => {
    hosts.clearFaults();
    user = await app.createUser();
  });

  const store = async (owner: TestUser, body: object): Promise<void> => {
    await app.as(owner).post('/api/add-git-providers', body).expect(200);
    for (const server of [hosts.github, hosts.gitlab, hosts.bitbucket]) {
      server.requests.length = 0;
    }
  };
  const storeOnly = async (...providers: ('github' | 'gitlab' | 'bitbucket')[]): Promise<void> =>
    store(user, {
      provider_tokens: Object.fromEntries(
        providers.map((provider) => [provider, hosts.tokens.provider_tokens[provider]]),
      ),
    });
  const find = (query = '', url = app.url): request.Test =>
    request(url).get(`${TASKS}${query}`).set(user.headers);
  const ofProvider = (body: Task[], provider: string): Task[] =>
    body.filter((task) => task.git_provider === provider);

  it('finds the work of all three providers in one order', async () => {
    await store(user, hosts.tokens);

    const { body, headers, status } = await find();

    expect(status).toBe(200);
    expect(Object.keys(body[0]).toSorted()).toEqual([
      'git_provider',
      'issue_number',
      'repo',
      'task_type',
      'title',
    ]);
    const github = [
      ['MERGE_CONFLICTS', 'octo/app', 12, 'Move the parser to streams'],
      ['FAILING_CHECKS', 'octo/app', 15, 'fix: "quoted" <b>tags</b> & a back\\slash'],
      ['OPEN_ISSUE', 'octo/app', 30, 'Crash when the file is empty'],
      ['CREATE_MICROAGENT', 'octo/app', 0, 'Add agent instructions to octo/app'],
      ['UNRESOLVED_COMMENTS', 'octo/library', 12, 'Übersetzung für 日本語 🚢'],
      ['OPEN_ISSUE', 'mona/notes', 2, 'Sort notes by date'],
      ['OPEN_PR', 'mona/notes', 3, 'Add notes of November'],
    ];
    const facts = (provider: string): unknown[] =>
      ofProvider(body, provider).map((task) => [task.task_type, task.repo, task.issue_number, task.title]);
    expect(facts('github')).toEqual(github);
    expect(facts('gitlab')).toEqual(github);
    expect(facts('bitbucket')).toEqual(github.filter(([type]) => type !== 'OPEN_ISSUE'));
    expect(headers['x-provider-status']).toBe(
      'github;status=ok;count=7, gitlab;status=ok;count=7, bitbucket;status=ok;count=5',
    );
    const recency = ['octo/app', 'octo/library', 'mona/notes'];
    const positions = (body as Task[]).map((task) => recency.indexOf(task.repo));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  });

  it('responds to unchanged data with the same bytes, and with 304 to its ETag', async () => {
    await store(user, hosts.tokens);

    const first = await find();
    const second = await find();
    expect(second.text).toBe(first.text);
    expect(first.headers['etag']).toMatch(/^"[\w-]+"$/);
    expect(first.headers['cache-control']).toBe('private, no-cache');

    const unchanged = await find().set('If-None-Match', first.headers['etag'] ?? '');
    expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    // Node's fetch says this along with every If-None-Match.
    const uncached = await find().set({
      'If-None-Match': first.headers['etag'] ?? '',
      'Cache-Control': 'no-cache',
    });
    expect(uncached.status).toBe(304);
    const changed = await find('?limit=1').set('If-None-Match', first.headers['etag'] ?? '');
    expect(changed.status).toBe(200);
  });

  it('narrows by type, provider and number, and says what was cut', async () => {
    await store(user, hosts.tokens);

    const types = await find('?task_types=OPEN_ISSUE,OPEN_PR');
    expect(new Set((types.body as Task[]).map((task) => task.task_type))).toEqual(
      new Set(['OPEN_ISSUE', 'OPEN_PR']),
    );
    const providers = await find('?providers=gitlab');
    expect(ofProvider(providers.body, 'gitlab')).toHaveLength(providers.body.length);
    expect(providers.headers['x-provider-status']).toBe('gitlab;status=ok;count=7');
    const limited = await find('?limit=1&providers=github');
    expect(limited.body).toHaveLength(1);
    expect(limited.headers['x-provider-status']).toBe('github;status=ok;count=1;truncated=1');
  });

  it('gives the same tasks by pages to clients of V1', async () => {
    await store(user, hosts.tokens);
    const { body: whole } = await find();
    const found: (Task & { url: string })[] = [];
    const sizes: number[] = [];
    for (let pageId: string | null = ''; pageId !== null;) {
      const path: string = `/api/v1/git/suggested-tasks/search?limit=7&page_id=${pageId}`;
      const { body, headers }: request.Response = await app.as(user).get(path).expect(200);
      expect(headers['x-provider-status']).toContain('github;status=ok');
      found.push(...body.items);
      sizes.push(body.items.length);
      pageId = body.next_page_id;
    }

    expect(found.map(({ url: _url, ...task }) => task)).toEqual(whole);
    expect(found.every(({ url, repo }) => new URL(url).pathname.includes(`/${repo}`))).toBe(true);
    expect(sizes.slice(0, -1).every((size) => size === 7)).toBe(true);
  });

  it('leaves the status header out when no provider was asked: an empty list has no form of its own', async () => {
    await storeOnly('github');

    const { body, headers, status } = await find('?providers=gitlab');

    expect([status, body]).toEqual([200, []]);
    expect(headers).not.toHaveProperty('x-provider-status');
  });

  it.each([
    ['providers=github,sourceforge', 'enum', 'providers'],
    ['limit=1&limit=2', 'int_type', 'limit'],
  ])('refuses ?%s', async (query, type, member) => {
    const { body, status } = await find(`?${query}`);

    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['query', member], type }]);
  });

  it('asks the providers once for fifty concurrent cold callers', async () => {
    await store(user, hosts.tokens);

    const answers = await Promise.all(Array.from({ length: 50 }, () => find()));

    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(hosts.github.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
    expect(hosts.gitlab.requests).toHaveLength(2);
  });

  it('forgets what it knew when the same token is stored anew, or another one', async () => {
    await storeOnly('github');
    await find().expect(200);
    await storeOnly('github');
    await find().expect(200);
    expect(hosts.github.requests.length).toBeGreaterThan(0);
    hosts.worlds.github.token = 'ghp_second4217token';
    try {
      await store(user, { provider_tokens: { github: { token: 'ghp_second4217token' } } });
      await find().expect(200);
      expect(hosts.github.requests.length).toBeGreaterThan(0);
    } finally {
      hosts.worlds.github.token = hosts.tokens.provider_tokens.github.token;
    }
  });

  describe('when a provider fails', () => {
    it('answers with the others', async () => {
      await storeOnly('github', 'gitlab');
      hosts.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });

      const { body, headers, status } = await find();

      expect(status).toBe(200);
      expect(ofProvider(body, 'github')).toHaveLength(7);
      expect(headers['x-provider-status']).toBe(
        'github;status=ok;count=7, gitlab;status=error;code=rate_limited;retry_after=41',
      );
    });

    it('counts partial data as success', async () => {
      await storeOnly('gitlab');
      hosts.gitlab.injectFault(
        { kind: 'status', status: 403 },
        { match: ({ path }) => path.includes('/v4/issues') },
      );

      const { body, headers, status } = await find();

      expect(status).toBe(200);
      expect((body as Task[]).map((task) => task.task_type)).not.toContain('OPEN_ISSUE');
      expect(headers['x-provider-status']).toBe('gitlab;status=partial;code=insufficient_scope;count=5');
    });

    it('never shows a token or an upstream response', async () => {
      await storeOnly('github', 'gitlab');
      const body = `secret upstream text ${hosts.worlds.github.token}`;
      hosts.github.injectFault({ kind: 'status', status: 500, body });
      hosts.gitlab.injectFault({ kind: 'status', status: 500, body });

      const { text } = await find();

      expect(text).not.toContain('secret upstream text');
      expect(text).not.toContain(hosts.worlds.github.token);
    });
  });

  it('responds in time, and to browsers of allowed origins, when all providers hang', async () => {
    const impatient = await createTestApp(
      { ...hosts.environment, CORS_ORIGINS: 'https://app.example.com', GIT_REQUEST_TIMEOUT_SECONDS: '1' },
      app.databaseUrl,
    );
    try {
      await storeOnly('github', 'gitlab');
      hosts.github.injectFault({ kind: 'hang' });
      hosts.gitlab.injectFault({ kind: 'hang' });

      const { body, headers } = await find('', impatient.url)
        .set('Origin', 'https://app.example.com')
        .expect(504);

      expect(body.errors).toEqual([
        { provider: 'github', code: 'timeout', retry_after: null },
        { provider: 'gitlab', code: 'timeout', retry_after: null },
      ]);
      expect(headers['access-control-allow-origin']).toBe('https://app.example.com');
      expect(headers['access-control-expose-headers']).toContain('X-Provider-Status');
    } finally {
      await impatient.close();
    }
  });

  describe('log lines about providers that fail', () => {
    let written: string[];

    beforeEach(async () => {
      await store(user, hosts.tokens);
      written = [];
      const capture = (chunk: unknown): boolean => {
        written.push(String(chunk));
        return true;
      };
      jest.spyOn(process.stdout, 'write').mockImplementation(capture);
      jest.spyOn(process.stderr, 'write').mockImplementation(capture);
      Logger.overrideLogger(new AppLogger({ level: 'info', format: 'json' }));
    });

    afterEach(() => {
      Logger.overrideLogger(false);
      jest.restoreAllMocks();
    });

    /** Those of a request: what the service does beside it may log, too. */
    const lines = (requestId: string | undefined): Record<string, unknown>[] =>
      written
        .map((line): Record<string, unknown> => JSON.parse(line))
        .filter(({ request_id: of }) => of === requestId);

    it('name provider, code and request, once each, and no token', async () => {
      hosts.github.injectFault({ kind: 'status', status: 401 });
      hosts.bitbucket.injectFault({ kind: 'status', status: 429 });
      hosts.gitlab.injectFault(
        { kind: 'status', status: 403 },
        { match: ({ path }) => path.includes('/v4/issues') },
      );

      const { headers } = await find();

      const request_id = headers['x-request-id'];
      expect(
        lines(request_id).toSorted((a, b) => String(a.provider).localeCompare(String(b.provider))),
      ).toEqual([
        expect.objectContaining({ level: 'warn', provider: 'bitbucket', code: 'rate_limited', request_id }),
        expect.objectContaining({ level: 'warn', provider: 'github', code: 'unauthorized', request_id }),
        expect.objectContaining({
          level: 'warn',
          provider: 'gitlab',
          code: 'insufficient_scope',
          request_id,
        }),
      ]);
      for (const { token } of Object.values(hosts.tokens.provider_tokens)) {
        expect(written.join('')).not.toContain(token);
      }
    });

    it('are written where the operator no longer runs enterprise_sso', async () => {
      await app.dataSource.query(
        `UPDATE provider_tokens SET provider = 'enterprise_sso', token = $2 WHERE user_id = $1 AND provider = 'github'`,
        [
          user.id,
          app.app.get(SecretCipher).encrypt('secret', providerTokenBinding(user.id, 'enterprise_sso')),
        ],
      );

      const { headers } = await find().expect(200);

      expect(headers['x-provider-status']).toContain('enterprise_sso;status=error;code=unsupported');
      const request_id = headers['x-request-id'];
      expect(lines(request_id)).toEqual([
        expect.objectContaining({
          level: 'warn',
          provider: 'enterprise_sso',
          code: 'unsupported',
          request_id,
        }),
      ]);
    });

    it('are written for the account too', async () => {
      hosts.github.injectFault({ kind: 'status', status: 503 });

      const { headers } = await app.as(user).get('/api/user/info').expect(502);

      const request_id = headers['x-request-id'];
      expect(lines(request_id)).toEqual([
        expect.objectContaining({ level: 'warn', provider: 'github', code: 'unavailable', request_id }),
      ]);
    });
  });
});
