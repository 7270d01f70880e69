import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { ProviderErrorCode } from '../src/git-provider.js';
import type { Fault } from '../../../test/fakes/fake-server.js';
import { until } from '../../../test/support/until.js';
import {
  failureOf,
  foreignServerOpener,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
} from './git-provider.harness.js';
import { ALL, BRANCHES } from './git-provider.lists.contract.js';

const LIMITED = { 'retry-after': '41' };
const HTML = { 'content-type': 'text/html' };

/** What a host answers to every request, what that means, and after how many seconds it may be asked again. */
const FAULTS: [string, Fault, ProviderErrorCode, number?][] = [
  ['401', { kind: 'status', status: 401 }, 'unauthorized'],
  ['403', { kind: 'status', status: 403 }, 'insufficient_scope'],
  ['403 of a limit', { kind: 'status', status: 403, headers: LIMITED }, 'rate_limited', 41],
  ['502', { kind: 'status', status: 502 }, 'unavailable'],
  ['200 with a page', { kind: 'status', status: 200, headers: HTML, body: '<h1>Log in</h1>' }, 'unavailable'],
  ['a broken connection', { kind: 'reset' }, 'unavailable'],
  ['an answer of 2.2 MB', { kind: 'huge', bytes: 2_200_000 }, 'unavailable'],
];

/** What goes wrong becomes a code, is tried once more where that can help, and never leads the token astray. */
export function describeFaults(
  setUp: GitProviderSetUp,
  capabilities: Pick<GitProviderCapabilities, 'authorization' | 'pages' | 'rejection'>,
): void {
  const open = harnessOpener(setUp);
  const openForeign = foreignServerOpener();

  it.each(FAULTS)(
    '%s, always, fails whatever is asked: %j is %s',
    async (_name, fault, usual, seconds: number | null = null) => {
      const code = usual === 'unauthorized' ? (capabilities.rejection ?? usual) : usual;
      const { provider, call, server } = await open();
      server.injectFault(fault);
      for (const ask of [
        () => provider.findWork(call),
        () => provider.getUser(call),
        () => provider.searchRepositories(ALL, call),
        () => provider.searchBranches(BRANCHES, call),
      ]) {
        const error = await failureOf(ask());
        expect(error).toMatchObject({ code, retryAfterSeconds: seconds, reason: null });
        expect(inspect(error, { depth: null, showHidden: true })).not.toContain(secretOf(call.token));
      }
      expect(await provider.checkToken(call)).toEqual(
        code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code },
      );
    },
  );

  it('tries again after a 502, which changes nothing', async () => {
    const { provider, call, server } = await open();
    const undisturbed = await provider.findWork(call);
    const again = await open();
    again.server.injectFault({ kind: 'status', status: 502 }, { times: 1 });
    expect(await again.provider.findWork(again.call)).toEqual(undisturbed);
    expect(again.server.requests).toHaveLength(server.requests.length + 1);
  });

  it('does not try again before a limit of requests ends', async () => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'status', status: 429, headers: LIMITED }, { times: 1 });
    await failureOf(provider.getUser(call));
    expect(server.requests).toHaveLength(1);
  });

  it('tries a host in trouble no more than twice', async () => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'status', status: 502 });
    await failureOf(provider.getUser(call));
    expect(server.requests).toHaveLength(2);
  });

  it('ends with timeout when the caller stops', async () => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'hang' });
    const caller = new AbortController();
    const stopping = { ...call, signal: caller.signal };
    const failures = [failureOf(provider.findWork(stopping)), failureOf(provider.getUser(stopping))];
    const check = provider.checkToken(stopping);
    await until(() => server.requests.length > 2);
    caller.abort();
    expect((await Promise.all(failures)).map(({ code }) => code)).toEqual(['timeout', 'timeout']);
    expect(await check).toEqual({ status: 'unverified', code: 'timeout' });
  });

  it('asks nothing after the deadline', async () => {
    const { provider, call, server } = await open();
    const late = { ...call, deadlineAt: Date.now() - 1 };
    expect((await failureOf(provider.findWork(late))).code).toBe('timeout');
    expect(server.requests).toHaveLength(0);
  });

  describe('another origin', () => {
    it('gets no request when it is sent there', async () => {
      const { provider, call, server } = await open();
      const foreign = await openForeign();
      server.injectFault({ kind: 'redirect', location: `${foreign.origin}/elsewhere` });
      for (const method of ['findWork', 'getUser'] as const) {
        expect((await failureOf(provider[method](call))).code).toBe('unavailable');
      }
      expect(await provider.checkToken(call)).toEqual({ status: 'unverified', code: 'unavailable' });
      expect(foreign.requests).toEqual([]);
    });

    it('gets no request as the next page', async () => {
      const { provider, call, server } = await open();
      const foreign = await openForeign();
      const nextPage = `${foreign.origin}/next?page=2`;
      server.injectFault(
        {
          kind: 'status',
          status: 200,
          headers: { link: `<${nextPage}>; rel="next"`, 'x-next-page': '2' },
          body: capabilities.pages?.body(nextPage) ?? [],
        },
        capabilities.pages ? { match: capabilities.pages.match } : {},
      );
      await Promise.allSettled([provider.findWork(call)]);
      expect(server.requests).not.toEqual([]);
      expect(foreign.requests).toEqual([]);
    });
  });

  it('sends the token in the authorization header of every request and nowhere else', async () => {
    const { provider, call, server } = await open();
    await provider.findWork(call);
    await provider.checkToken(call);
    await provider.getUser(call);
    await provider.searchRepositories({ ...ALL, text: 'app' }, call);
    await provider.searchBranches({ ...BRANCHES, text: 'fix' }, call);
    await provider.listInstallations({ position: 1, limit: 10 }, call);
    const opened = { repository: 'octo/app', sourceBranch: 'fix/it', targetBranch: null, title: 'Fix it' };
    await provider.changeRequests(call, (changes) => changes.open({ ...opened, body: '', draft: false }));
    expect(new Set(server.requests.map(({ headers }) => headers['authorization']))).toEqual(
      new Set([capabilities.authorization(call.token)]),
    );
    const elsewhere = server.requests.map(({ headers, path, query, body }) =>
      JSON.stringify([{ ...headers, authorization: '' }, path, query.toString(), body]),
    );
    expect(elsewhere.filter((text) => text.includes(secretOf(call.token)))).toEqual([]);
  });
}

/** The part of `email:token` that must stay hidden, or the whole token. */
function secretOf(token: string): string {
  return token.slice(token.indexOf(':') + 1);
}
