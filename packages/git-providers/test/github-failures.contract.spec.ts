import { describe, expect, it } from '@jest/globals';
import type { Fault } from '../../../test/fakes/fake-server.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import { failureOf } from './git-provider.harness.js';
import { githubOpener, isQuery, NOW, variablesOf } from './github.harness.js';

describe('GithubProvider when GitHub answers only in part', () => {
  const open = githubOpener();

  describe('limits', () => {
    const graphqlLimit = { errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded.' }] };
    const exhausted = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1_000 + 29) };

    it.each<[string, Fault, number]>([
      [
        'in an answer with status 200',
        { kind: 'status', status: 200, headers: exhausted, body: graphqlLimit },
        30,
      ],
      [
        'in an answer with status 200 that tells no time',
        { kind: 'status', status: 200, body: graphqlLimit },
        60,
      ],
    ])('are recognised %s', async (_name, fault, retryAfterSeconds) => {
      const { provider, call, server } = await open();
      server.injectFault(fault);
      const error = await failureOf(provider.findWork(call));
      expect([error.code, error.retryAfterSeconds]).toEqual(['rate_limited', retryAfterSeconds]);
      expect(server.requests).toHaveLength(2);
      expect(await provider.checkToken(call)).toMatchObject({
        status: 'unverified',
        code: 'rate_limited',
      });
    });
  });

  describe('parts of an answer', () => {
    it('stay when an organisation wants single sign-on', async () => {
      const { provider, call, server } = await open();
      server.injectFault(
        {
          kind: 'status',
          status: 200,
          body: {
            data: { viewer: { login: 'mona', recent: { nodes: [null, { nameWithOwner: 'octo/app' }] } } },
            errors: [
              { type: 'NOT_FOUND', message: 'Could not resolve to a node.' },
              {
                type: 'FORBIDDEN',
                path: ['viewer', 'recent', 'nodes', 0],
                extensions: { saml_failure: true },
                message: 'Resource protected by organization SAML enforcement.',
              },
            ],
          },
        },
        { match: isQuery('SuggestedTaskReposAndIssues') },
      );
      const work = await provider.findWork(call);
      expect(work.gaps).toEqual(['sso_required']);
      expect(work.recentRepositories).toEqual([{ name: 'octo/app', activeAt: null, usable: true }]);
      expect(work.changeRequests).toHaveLength(5);
    });

    it.each<[string, object, string]>([
      ['single sign-on', { extensions: { saml_failure: true } }, 'sso_required'],
      [
        'the list of addresses',
        { message: 'the octo organization has an IP allow list enabled' },
        'blocked_by_policy',
      ],
    ])('hide a followed pull request for %s, which is not gone', async (_what, error, code) => {
      const { provider, call, server } = await open();
      const errors = [{ type: 'FORBIDDEN', path: ['c0'], message: 'No.', ...error }];
      const body = { data: { c0: null }, errors };
      server.injectFault({ kind: 'status', status: 200, body }, { match: isQuery('Followed') });
      const ref = { repository: 'octo/app', number: 15 };
      const read = provider.changeRequests(call, (changes) => changes.read([ref]));
      expect((await failureOf(read)).code).toBe(code);
    });

    it.each([
      ['SuggestedTaskPRs', { changeRequests: 0, issues: 2, repositories: 3 }],
      ['SuggestedTaskReposAndIssues', { changeRequests: 5, issues: 0, repositories: 0 }],
    ])('stay when %s fails', async (query, counts) => {
      const { provider, call, server } = await open();
      server.injectFault({ kind: 'status', status: 403 }, { match: isQuery(query) });
      const work = await provider.findWork(call);
      expect({
        changeRequests: work.changeRequests.length,
        issues: work.issues.length,
        repositories: work.recentRepositories.length,
      }).toEqual(counts);
      expect(work.gaps).toEqual(['insufficient_scope']);
    });

    it('matter less than a rejected token when nothing is left', async () => {
      const { provider, call, server } = await open();
      server.injectFault({ kind: 'status', status: 502 }, { match: isQuery('SuggestedTaskPRs') });
      server.injectFault({ kind: 'status', status: 401 });
      expect((await failureOf(provider.findWork(call))).code).toBe('unauthorized');
    });
  });

  describe('a query that is too much for the server', () => {
    const gaveUp = { message: 'Something went wrong while executing your query. Please include `1:2:3`.' };

    it.each<[string, Fault]>([
      ['a 502', { kind: 'status', status: 502 }],
      ['an error in the answer', { kind: 'status', status: 200, body: { data: null, errors: [gaveUp] } }],
    ])('is halved after %s', async (_name, fault) => {
      const { provider, call, server, delays } = await open();
      server.injectFault(fault, { times: 2 });
      const { gaps, changeRequests } = await provider.findWork(call);
      expect([gaps, changeRequests.length]).toEqual([[], 5]);
      expect(delays).toEqual([500, 500]);
      const [first, second] = server.requests.filter(isQuery('SuggestedTaskPRs')).map(variablesOf);
      expect([first, second]).toEqual([
        { prs: 50, threads: 30 },
        { prs: 25, threads: 15 },
      ]);
      const others = server.requests.filter(isQuery('SuggestedTaskReposAndIssues')).map(variablesOf);
      expect(others).toEqual([
        { repos: 100, probe: 10, issues: 50 },
        { repos: 50, probe: 5, issues: 25 },
      ]);
    });

    // raycast/extensions#29578: lists are null, beside an error, with status 200.
    it.each([30, 3, 1])(
      'is halved until it needs no more than one may: %d at once',
      async (resourceLimit) => {
        const { provider, call, server } = await open(undefined, { resourceLimit });
        const { gaps, changeRequests, recentRepositories, truncated } = await provider.findWork(call);
        expect({
          gaps,
          changeRequests: changeRequests.length,
          repositories: recentRepositories.length,
        }).toEqual({
          gaps: [],
          changeRequests: Math.min(5, resourceLimit),
          repositories: Math.min(3, resourceLimit),
        });
        expect(truncated).toBe(resourceLimit < 5);
        const sizes = server.requests.filter(isQuery('SuggestedTaskPRs')).map(variablesOf);
        expect(sizes.slice(0, 2)).toEqual([
          { prs: 50, threads: 30 },
          { prs: 25, threads: 15 },
        ]);
        expect(sizes.length).toBeLessThanOrEqual(7);
      },
    );

    it('says so where one alone is too much, and keeps the rest', async () => {
      const { provider, call, server } = await open(undefined, { resourceLimit: 0 });
      const { gaps, changeRequests, issues } = await provider.findWork(call);
      expect([gaps, changeRequests.length, issues.length]).toEqual([['query_too_large'], 0, 2]);
      expect(server.requests.filter(isQuery('SuggestedTaskPRs')).map(variablesOf).at(-1)).toEqual({
        prs: 1,
        threads: 1,
      });
    });

    it.each([{ viewer: { login: 'mona', pullRequests: null } }, { viewer: null }, null])(
      'is halved after the answer %j',
      async (data) => {
        const { provider, call, server } = await open();
        const body = {
          data,
          errors: [
            {
              type: 'RESOURCE_LIMITS_EXCEEDED',
              path: ['viewer', 'pullRequests'],
              message: 'Resource limits for this query exceeded.',
            },
          ],
        };
        const fault: Fault = { kind: 'status', status: 200, body };
        server.injectFault(fault, { times: 2, match: isQuery('SuggestedTaskPRs') });
        const { gaps, changeRequests } = await provider.findWork(call);
        expect([gaps, changeRequests.length]).toEqual([[], 5]);
        expect(server.requests.filter(isQuery('SuggestedTaskPRs')).map(variablesOf).at(-1)).toEqual({
          prs: 12,
          threads: 7,
        });
      },
    );

    it('stays as it is after a broken connection', async () => {
      const { provider, call, server } = await open();
      server.injectFault({ kind: 'reset' }, { times: 2 });
      await provider.findWork(call);
      expect(server.requests.filter(isQuery('SuggestedTaskPRs')).map(variablesOf)).toEqual([
        { prs: 50, threads: 30 },
        { prs: 50, threads: 30 },
      ]);
    });

    it('says that there is more when half of it is all that was read', async () => {
      const world = sampleWorld();
      world.changeRequests = Array.from({ length: 26 }, (_unused, index) => ({
        repository: 'octo/app',
        number: index + 1,
        title: `Change ${index + 1}`,
        updatedAt: '2026-11-20T00:00:00Z',
      }));
      const { provider, call, server } = await open(world);
      server.injectFault({ kind: 'status', status: 502 }, { times: 1, match: isQuery('SuggestedTaskPRs') });
      const { changeRequests, truncated } = await provider.findWork(call);
      expect([changeRequests.length, truncated]).toEqual([25, true]);
    });
  });
});
