import { describe, expect, it } from '@jest/globals';
import type { ChangeRequests, FollowedChangeRequest } from '../src/git-provider.js';
import {
  addCheck,
  addComment,
  addReply,
  approve,
  commitNamed,
  deleteRepository,
  endWith,
  followedOf,
  push,
  requestChanges,
} from '../../../test/fakes/fake-followed.js';
import type { Fault } from '../../../test/fakes/fake-server.js';
import type { FakeChangeRequest } from '../../../test/fakes/fake-world.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderHarness,
  type GitProviderSetUp,
  harnessOpener,
  type Opened,
} from './git-provider.harness.js';

const REF = { repository: 'octo/app', number: 15 };

interface Followed extends GitProviderHarness, Opened {
  change: FakeChangeRequest;
  use: <T>(work: (changes: ChangeRequests) => Promise<T>) => Promise<T>;
  read: () => Promise<FollowedChangeRequest | null>;
}

/** Change requests that are followed: their checks, comments and ends, and answers to comments. */
export function describeFollow(
  setUp: GitProviderSetUp,
  { follow, rejection }: GitProviderCapabilities,
): void {
  const open = harnessOpener(setUp);

  async function openFollowed(): Promise<Followed> {
    const harness = await open();
    const [, change] = harness.world.changeRequests;
    if (!change) {
      throw new Error('the world has no second change request');
    }
    const use: Followed['use'] = (work) => harness.provider.changeRequests(harness.call, work);
    const read = async () => (await use((changes) => changes.read([REF])))[0] ?? null;
    return { ...harness, change, use, read };
  }

  describe('reads', () => {
    it('one without checks and comments', async () => {
      const { change, read } = await openFollowed();
      expect(await read()).toEqual({
        state: 'open',
        url: 'https://code.example/octo/app/15',
        headSha: followedOf(change).head.slice(0, follow.shaLength),
        conflicts: 'no',
        approved: false,
        checks: [],
        comments: [],
        truncated: false,
      });
    });

    it('several in their order, those that are gone among them', async () => {
      const { use } = await openFollowed();
      const refs = [
        { repository: 'octo/library', number: 12 },
        { repository: 'octo/none', number: 1 },
        REF,
        { repository: 'octo/app', number: 999 },
        { repository: 'octo/app', number: 12 },
      ];
      const found = await use((changes) => changes.read(refs));
      expect(found.map((one) => one?.url.split('.example/')[1] ?? null)).toEqual([
        'octo/library/12',
        null,
        'octo/app/15',
        null,
        'octo/app/12',
      ]);
    });

    it('many, and nothing when nothing is asked', async () => {
      const { use, server } = await openFollowed();
      const found = await use((changes) => changes.read(Array.from({ length: 12 }, () => REF)));
      expect(found.filter((one) => one !== null)).toHaveLength(12);
      expect(server.requests.length).toBeLessThanOrEqual(follow.requestsForTwelve);
      server.requests.length = 0;
      expect(await use((changes) => changes.read([]))).toEqual([]);
      expect(server.requests.length).toBeLessThanOrEqual(2);
    });

    it('checks, whose ids stay while they run', async () => {
      const { change, read } = await openFollowed();
      const unit = addCheck(change, 'unit');
      addCheck(change, 'lint', { state: 'passed' });
      addCheck(change, 'deploy', { state: 'failed', isStatus: true });
      const before = await read();
      unit.state = 'failed';
      const after = await read();
      const states = (found: FollowedChangeRequest | null) =>
        Object.fromEntries(found?.checks.map(({ name, state }) => [name, state]) ?? []);
      expect(states(before)).toEqual({ unit: 'pending', lint: 'passed', deploy: 'failed' });
      expect(states(after)).toEqual({ unit: 'failed', lint: 'passed', deploy: 'failed' });
      expect(idsOf(after)).toEqual(idsOf(before));
      expect(new Set(idsOf(after)).size).toBe(3);
      expect(after?.checks.map(({ url }) => url)).toEqual(
        Array.from({ length: 3 }, () => expect.stringMatching(/^https?:\/\//)),
      );
    });

    it('only those of the current commit, after a push', async () => {
      const { change, read } = await openFollowed();
      addCheck(change, 'unit', { state: 'failed' });
      const before = await read();
      push(change, commitNamed('another'));
      const pushed = await read();
      addCheck(change, 'unit', { state: 'failed' });
      const after = await read();
      expect(pushed).toMatchObject({
        headSha: commitNamed('another').slice(0, follow.shaLength),
        checks: [],
      });
      expect(after?.checks).toMatchObject([{ name: 'unit', state: 'failed' }]);
      expect(idsOf(after)).not.toEqual(idsOf(before));
    });

    it('comments in threads, with place, author and whether they are resolved', async () => {
      const { change, read } = await openFollowed();
      const at = { path: 'src/retry.ts', line: 12 };
      const root = addComment(change, 'ada', 'Why twice?', { ...at, createdAt: '2026-11-21T10:00:00Z' });
      const reply = addReply(change, root, 'mona', 'Because it fails once.');
      const [first, second] = (await read())?.comments ?? [];
      expect(first).toMatchObject({
        author: 'ada',
        own: false,
        mayWrite: follow.mayWrite ? true : null,
        body: 'Why twice?',
        ...at,
        createdAt: Date.parse('2026-11-21T10:00:00Z'),
        resolved: false,
      });
      expect(second).toMatchObject({
        author: 'mona',
        own: true,
        body: reply.body,
        path: at.path,
        resolved: false,
      });
      expect(first?.threadId).toEqual(expect.any(String));
      expect(second?.threadId).toBe(first?.threadId);
      root.resolved = true;
      expect((await read())?.comments.map(({ resolved }) => resolved)).toEqual([true, true]);
    });

    it('comments without a place, of those who may write and of strangers', async () => {
      const { change, read } = await openFollowed();
      addComment(change, 'ada', '@slipway stop');
      addComment(change, 'stranger', 'me too', { mayWrite: false });
      const { comments = [] } = (await read()) ?? {};
      expect(comments).toMatchObject([
        { author: 'ada', body: '@slipway stop', path: null, line: null, resolved: null },
        { author: 'stranger', body: 'me too', path: null, line: null, resolved: null },
      ]);
      expect(comments.map(({ mayWrite }) => mayWrite)).toEqual(
        follow.mayWrite ? [true, false] : [null, null],
      );
      expect(new Set(comments.map(({ id }) => id)).size).toBe(2);
    });

    it('comments of apps', async () => {
      const { change, read } = await openFollowed();
      addComment(change, 'ada', 'Hm.');
      addComment(change, 'vercel', 'A preview is ready.', { isBot: true });
      addComment(change, 'cursor', 'This is null.', { isBot: true, path: 'a.ts' });
      expect((await read())?.comments.map(({ author, isBot }) => [author, isBot])).toEqual([
        ['ada', false],
        ['vercel', true],
        ['cursor', true],
      ]);
    });

    it('long and many comments: the newest, clipped', async () => {
      const { change, read } = await openFollowed();
      for (let index = 0; index < 130; index += 1) {
        const createdAt = new Date(Date.UTC(2026, 10, 1, 0, index)).toISOString();
        addComment(change, 'ada', `${index} ${'x'.repeat(9_000)}`, { createdAt });
      }
      const found = await read();
      expect(found?.comments.length).toBeLessThanOrEqual(100);
      expect(found?.comments.at(-1)?.body.startsWith('129 xxx')).toBe(true);
      expect(Math.max(...(found?.comments ?? []).map(({ body }) => body.length))).toBe(4_000);
    });

    it('whether threads may be open that it does not tell of', async () => {
      const { change, read } = await openFollowed();
      const [first, ...rest] = Array.from({ length: 60 }, (_, index) =>
        addComment(change, 'ada', `${index}`, { path: 'a.ts', resolved: true }),
      );
      for (const comment of rest) {
        addReply(change, comment, 'mona', 'Done.');
      }
      expect((await read())?.truncated).toBe(follow.doubtsThreads ?? false);
      Object.assign(first ?? {}, { resolved: false });
      const { truncated, comments } = (await read()) ?? {};
      expect(truncated === true || comments?.some(({ resolved }) => resolved === false)).toBe(true);
    });

    it('strangers who write more than one response may have', async () => {
      const { change, read } = await openFollowed();
      for (let index = 0; index < 8; index += 1) {
        addComment(change, 'stranger', '\u0001'.repeat(65_000), { path: 'a.ts', mayWrite: false });
      }
      addComment(change, 'ada', '@slipway stop', { createdAt: '2030-01-01T00:00:00Z' });
      expect((await read())?.comments.at(-1)?.body).toBe('@slipway stop');
    });

    it('approval', async () => {
      const { change, read } = await openFollowed();
      approve(change, 'ada');
      expect((await read())?.approved).toBe(true);
      requestChanges(change, 'grace');
      expect((await read())?.approved).toBe(false);
      approve(change, 'grace');
      expect((await read())?.approved).toBe(true);
    });

    it('conflicts', async () => {
      const { change, read } = await openFollowed();
      change.conflicts = 'yes';
      push(change, commitNamed('conflicting'));
      expect((await read())?.conflicts).toBe('yes');
      change.conflicts = 'unknown';
      push(change, commitNamed('not looked at'));
      expect((await read())?.conflicts).toBe('unknown');
    });

    it('one that was closed or merged, and none of a repository that was deleted', async () => {
      const { world, change, read } = await openFollowed();
      endWith(change, 'closed');
      expect((await read())?.state).toBe('closed');
      endWith(change, 'merged');
      expect((await read())?.state).toBe('merged');
      deleteRepository(world, 'octo/app');
      expect(await read()).toBeNull();
    });

    it('none for another token, and says so', async () => {
      const { provider, otherCall } = await openFollowed();
      const failed = failureOf(provider.changeRequests(otherCall, (changes) => changes.read([REF])));
      expect((await failed).code).toBe(rejection ?? 'unauthorized');
    });

    it.each<[string, Fault]>([
      ['503', { kind: 'status', status: 503 }],
      ['something else', { kind: 'status', status: 200, body: { data: { viewer: { login: 'mona' } } } }],
      ['a broken connection', { kind: 'reset' }],
    ])('none as gone when the host answers %s', async (_name, fault) => {
      const { server, read } = await openFollowed();
      await read();
      server.injectFault(fault, { match: ({ path }) => !path.endsWith('/application-properties') });
      const isMisfit = fault.kind === 'status' && fault.status === 200;
      expect((await failureOf(read())).code).toBe((isMisfit ? follow.misfit : undefined) ?? 'unavailable');
    });
  });

  describe('tells the output of a check', () => {
    it('by its last lines', async () => {
      const { change, use, read } = await openFollowed();
      const lines = Array.from({ length: 5_000 }, (_, index) => `2026-11-21T10:00:00.1234567Z line ${index}`);
      const log = [...lines, '\u001b[31mFAIL\u001b[0m: no'].join('\r\n');
      addCheck(change, 'unit', { state: 'failed', log });
      const [check] = (await read())?.checks ?? [];
      const output = check ? await use((changes) => changes.output(REF, check)) : null;
      if (follow.logs) {
        expect(output?.length).toBeLessThanOrEqual(4_000);
        expect(output?.length).toBeGreaterThan(3_000);
        expect(output).toMatch(/^line \d+\n[^]*\nline 4999\nFAIL: no$/);
      } else {
        expect(output).toBe('');
      }
    });

    it('as nothing where another service keeps it, or it is gone', async () => {
      const { change, use, read } = await openFollowed();
      const gone = addCheck(change, 'unit', { state: 'failed', log: 'no' });
      if (follow.statuses) {
        addCheck(change, 'deploy', { state: 'failed', isStatus: true, log: 'no' });
      }
      const { checks = [] } = (await read()) ?? {};
      followedOf(change).checks = followedOf(change).checks.filter((check) => check !== gone);
      for (const check of checks) {
        expect(await use((changes) => changes.output(REF, check))).toBe('');
      }
    });
  });

  describe('answers', () => {
    it('in the thread', async () => {
      const { change, use, read } = await openFollowed();
      const root = addComment(change, 'ada', 'Why?', { path: 'a.ts' });
      addReply(change, root, 'grace', 'Yes, why?');
      const asked = (await read())?.comments.at(-1);
      expect(asked?.body).toBe('Yes, why?');
      const body = 'Now it "does" 🚢';
      const answer = asked && (await use((changes) => changes.reply(REF, asked, body)));
      const last = (await read())?.comments.at(-1);
      expect(last).toMatchObject({ id: answer?.id, own: true, threadId: asked?.threadId, body });
      expect(followedOf(change).comments.at(-1)).toMatchObject({ root: root.id });
    });

    it('a comment without a place', async () => {
      const { change, use, read } = await openFollowed();
      addComment(change, 'ada', 'And the docs?');
      const asked = (await read())?.comments[0];
      const answer = asked && (await use((changes) => changes.reply(REF, asked, 'Written.')));
      const found = (await read())?.comments.find(({ id }) => id === answer?.id);
      expect(found).toMatchObject({ own: true, body: 'Written.' });
    });

    it('once, and says why when the host refuses', async () => {
      const { use, server, world, change, read } = await openFollowed();
      addComment(change, 'ada', 'Why?', { path: 'a.ts' });
      const asked = (await read())?.comments[0] ?? { id: '', threadId: null };
      const answer = () => failureOf(use((changes) => changes.reply(REF, asked, 'Because.')));
      const isWritten = ({ method, body }: { method: string; body: string }) =>
        method === 'POST' && body.includes('Because.');
      const message = `the token ${world.token} has no permission`;
      server.injectFault(
        { kind: 'status', status: 403, body: { message, error: { message }, errors: [{ message }] } },
        { match: isWritten, times: 1 },
      );
      const { code, reason } = await answer();
      expect([code, reason]).toEqual(['insufficient_scope', 'the token *** has no permission']);
      server.injectFault({ kind: 'status', status: 502 }, { match: isWritten });
      expect((await answer()).code).toBe('unavailable');
      expect(server.requests.filter(isWritten)).toHaveLength(2);
    });
  });
}

function idsOf(found: FollowedChangeRequest | null): string[] {
  return found?.checks.map(({ id }) => id) ?? [];
}
