import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { ProviderErrorCode } from '../../src/git-providers/git-provider.js';
import type { Fault } from '../fakes/fake-server.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { until } from '../support/until.js';
import {
  failureOf,
  foreignServerOpener,
  type GitProviderCapabilities,
  type GitProviderHarness,
  type GitProviderSetUp,
  harnessOpener,
  relaxedCall,
} from './git-provider.harness.js';

interface FaultCase {
  name: string;
  fault: Fault;
  code: ProviderErrorCode;
  retryAfterSeconds?: number;
}

const LIMITED = { 'retry-after': '41' };
const HTML = { 'content-type': 'text/html' };

/** What a host answers to every request, and what that means. */
export const FAULTS: FaultCase[] = [
  { name: '401', fault: { kind: 'status', status: 401 }, code: 'unauthorized' },
  { name: '403', fault: { kind: 'status', status: 403 }, code: 'insufficient_scope' },
  {
    name: '403 of a rate limit',
    fault: { kind: 'status', status: 403, headers: LIMITED },
    code: 'rate_limited',
    retryAfterSeconds: 41,
  },
  {
    name: '429',
    fault: { kind: 'status', status: 429, headers: LIMITED },
    code: 'rate_limited',
    retryAfterSeconds: 41,
  },
  { name: '502', fault: { kind: 'status', status: 502 }, code: 'unavailable' },
  {
    name: '502 with a page',
    fault: { kind: 'status', status: 502, headers: HTML, body: '<h1>Bad gateway</h1>' },
    code: 'unavailable',
  },
  {
    name: '200 with a page',
    fault: { kind: 'status', status: 200, headers: HTML, body: '<h1>Log in</h1>' },
    code: 'unavailable',
  },
  { name: 'a broken connection', fault: { kind: 'reset' }, code: 'unavailable' },
  { name: 'truncated JSON', fault: { kind: 'truncate' }, code: 'unavailable' },
  { name: 'an answer of 10 MB', fault: { kind: 'huge', bytes: 10_000_000 }, code: 'unavailable' },
];

/** What goes wrong becomes a code, is tried once more where that can help, and never leads the token astray. */
export function describeFaults(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const open = harnessOpener(setUp);
  const openForeign = foreignServerOpener();

  const faults = FAULTS.map((fault) => ({
    ...fault,
    code: fault.code === 'unauthorized' ? (capabilities.rejection ?? fault.code) : fault.code,
  }));

  describe.each(faults)('$name, always', ({ fault, code, retryAfterSeconds }) => {
    const openFaulty = async (): Promise<GitProviderHarness> => {
      const harness = await open(sampleWorld());
      harness.server.injectFault(fault);
      return harness;
    };

    it(`fails findWork with ${code}`, async () => {
      const { provider, auth } = await openFaulty();
      const error = await failureOf(provider.findWork({ ...auth, ...relaxedCall() }));
      expect(error.code).toBe(code);
      expect(error.retryAfterSeconds).toBe(retryAfterSeconds ?? null);
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(secretOf(auth.token));
    });

    it(`fails getUser with ${code}`, async () => {
      const { provider, auth } = await openFaulty();
      const error = await failureOf(provider.getUser({ ...auth, ...relaxedCall() }));
      expect(error.code).toBe(code);
      expect(error.retryAfterSeconds).toBe(retryAfterSeconds ?? null);
    });

    it(`lets checkToken say ${code === 'unauthorized' ? 'invalid' : 'unverified'}`, async () => {
      const { provider, auth } = await openFaulty();
      expect(await provider.checkToken({ ...auth, ...relaxedCall() })).toEqual(
        code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code },
      );
    });
  });

  describe('once', () => {
    it.each<[string, Fault]>([
      ['502', { kind: 'status', status: 502 }],
      ['503', { kind: 'status', status: 503 }],
      ['a broken connection', { kind: 'reset' }],
      ['truncated JSON', { kind: 'truncate' }],
    ])('%s is tried again and changes nothing', async (_name, fault) => {
      const { provider, auth, server } = await open(sampleWorld());
      const undisturbed = await provider.findWork({ ...auth, ...relaxedCall() });
      const again = await open(sampleWorld());
      again.server.injectFault(fault, { times: 1 });
      expect(await again.provider.findWork({ ...again.auth, ...relaxedCall() })).toEqual(undisturbed);
      expect(again.server.requests).toHaveLength(server.requests.length + 1);
    });

    it.each<[string, Fault]>([
      ['401', { kind: 'status', status: 401 }],
      ['429', { kind: 'status', status: 429, headers: LIMITED }],
      ['503 that asks for a long pause', { kind: 'status', status: 503, headers: LIMITED }],
    ])('%s is not tried again', async (_name, fault) => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault(fault, { times: 1 });
      await failureOf(provider.getUser({ ...auth, ...relaxedCall() }));
      expect(server.requests).toHaveLength(1);
    });
  });

  it('tries a host in trouble no more than twice', async () => {
    const { provider, auth, server } = await open(sampleWorld());
    server.injectFault({ kind: 'status', status: 502 });
    await failureOf(provider.getUser({ ...auth, ...relaxedCall() }));
    expect(server.requests).toHaveLength(2);
  });

  describe('time', () => {
    it.each(['findWork', 'getUser'] as const)(
      '%s ends with timeout when the caller stops',
      async (method) => {
        const { provider, auth, server } = await open(sampleWorld());
        server.injectFault({ kind: 'hang' });
        const caller = new AbortController();
        const failure = failureOf(provider[method]({ ...auth, ...relaxedCall(caller.signal) }));
        await until(() => server.requests.length > 0);
        caller.abort();
        expect((await failure).code).toBe('timeout');
      },
    );

    it('checkToken gives no verdict when the caller stops', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault({ kind: 'hang' });
      const caller = new AbortController();
      const check = provider.checkToken({ ...auth, ...relaxedCall(caller.signal) });
      await until(() => server.requests.length > 0);
      caller.abort();
      expect(await check).toEqual({ status: 'unverified', code: 'timeout' });
    });

    it('asks nothing after the deadline', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      const late = { ...relaxedCall(), deadlineAt: Date.now() - 1 };
      expect((await failureOf(provider.findWork({ ...auth, ...late }))).code).toBe('timeout');
      expect(server.requests).toHaveLength(0);
    });
  });

  describe('another origin', () => {
    it.each(['findWork', 'getUser'] as const)('gets no request when %s is sent there', async (method) => {
      const { provider, auth, server } = await open(sampleWorld());
      const foreign = await openForeign();
      server.injectFault({ kind: 'redirect', location: `${foreign.origin}/elsewhere` });
      expect((await failureOf(provider[method]({ ...auth, ...relaxedCall() }))).code).toBe('unavailable');
      expect(foreign.requests).toEqual([]);
    });

    it('gets no request when checkToken is sent there', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      const foreign = await openForeign();
      server.injectFault({ kind: 'redirect', location: `${foreign.origin}/elsewhere` });
      expect(await provider.checkToken({ ...auth, ...relaxedCall() })).toEqual({
        status: 'unverified',
        code: 'unavailable',
      });
      expect(foreign.requests).toEqual([]);
    });

    it('gets no request as the next page', async () => {
      const { provider, auth, server } = await open(sampleWorld());
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
      await Promise.allSettled([provider.findWork({ ...auth, ...relaxedCall() })]);
      expect(server.requests).not.toEqual([]);
      expect(foreign.requests).toEqual([]);
    });
  });

  it('sends the token in the authorization header of every request and nowhere else', async () => {
    const { provider, auth, server } = await open(sampleWorld());
    await provider.findWork({ ...auth, ...relaxedCall() });
    await provider.checkToken({ ...auth, ...relaxedCall() });
    await provider.getUser({ ...auth, ...relaxedCall() });
    expect(new Set(server.requests.map(({ headers }) => headers['authorization']))).toEqual(
      new Set([capabilities.authorization(auth.token)]),
    );
    const elsewhere = server.requests.map(({ headers, path, query, body }) =>
      JSON.stringify([{ ...headers, authorization: '' }, path, query.toString(), body]),
    );
    expect(elsewhere.filter((text) => text.includes(secretOf(auth.token)))).toEqual([]);
  });
}

/** The part of `email:token` that must stay hidden, or the whole token. */
function secretOf(token: string): string {
  return token.slice(token.indexOf(':') + 1);
}
