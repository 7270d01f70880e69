import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { NewChangeRequest } from '../../src/git-providers/git-provider.js';
import { addTo, pageOf } from '../fakes/fake-change-requests.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import {
  failureOf,
  foreignServerOpener,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
  relaxedCall,
} from './git-provider.harness.js';

const REQUEST: NewChangeRequest = {
  repository: 'octo/app',
  sourceBranch: 'fix/it',
  targetBranch: 'release',
  title: 'Fix "it" für 日本語',
  body: '## Why\n\nBecause.',
  draft: false,
};

function isCreation({ method, body }: FakeRequest): boolean {
  return method === 'POST' && body.includes('Because.');
}

/** Opening is idempotent, is sent once, and says why it was refused. */
export function describeChangeRequests(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const open = harnessOpener(setUp);
  const openForeign = foreignServerOpener();

  it('opens one', async () => {
    const world = sampleWorld();
    const { provider, auth } = await open(world);
    const opened = await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
      changes.open(REQUEST),
    );
    const last = world.changeRequests.at(-1);
    expect(last).toMatchObject({ ...REQUEST, number: 16 });
    expect(opened).toEqual({ number: 16, url: 'https://code.example/octo/app/16' });
  });

  it('opens a draft', async () => {
    const world = sampleWorld();
    const { provider, auth } = await open(world);
    await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
      changes.open({ ...REQUEST, draft: true }),
    );
    expect(world.changeRequests.at(-1)).toMatchObject({ title: REQUEST.title, draft: true });
  });

  it('takes the default branch where none is named', async () => {
    const world = sampleWorld();
    const { provider, auth } = await open(world);
    const request = { ...REQUEST, repository: 'octo/library', targetBranch: null };
    expect(
      await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(request)),
    ).toMatchObject({
      number: 13,
    });
    expect(world.changeRequests.at(-1)).toMatchObject({ targetBranch: 'trunk' });
  });

  it('answers the open one when asked again, and leaves it as it is', async () => {
    const world = sampleWorld();
    const { provider, auth } = await open(world);
    const first = await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
      changes.open(REQUEST),
    );
    const again = { ...REQUEST, title: 'Another title', body: 'Another text', draft: true };
    expect(
      await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(again)),
    ).toEqual(first);
    expect(world.changeRequests).toHaveLength(sampleWorld().changeRequests.length + 1);
    expect(world.changeRequests.at(-1)).toMatchObject(REQUEST);
  });

  it('opens another one for another target', async () => {
    const world = sampleWorld();
    const { provider, auth } = await open(world);
    const first = await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
      changes.open(REQUEST),
    );
    const second = { ...REQUEST, targetBranch: 'main' };
    expect(
      (await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(second)))
        .number,
    ).toBe(first.number + 1);
  });

  describe('refused', () => {
    it.each([
      ['a branch that is not there', { sourceBranch: 'no-such-branch' }, /(source|head|branch)/],
      ['a target that is not there', { targetBranch: 'no-such-branch' }, /(target|base|destination|branch)/],
      ['nothing to merge', { targetBranch: 'fix/it' }, /(commits|same|changes|up-to-date)/],
      ['an unknown repository', { repository: 'octo/none' }, /the repository .*does not exist/],
      [
        'an unknown repository, default branch',
        { repository: 'octo/none', targetBranch: null },
        /does not exist/,
      ],
      ['what is no name', { repository: 'octo' }, /is not named/],
    ])('for %s, says why', async (_name, change, reason) => {
      const world = sampleWorld();
      const { provider, auth } = await open(world);
      const error = await failureOf(
        provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
          changes.open({ ...REQUEST, ...change }),
        ),
      );
      expect([error.code, error.reason]).toEqual(['unsupported', expect.stringMatching(reason)]);
      expect(world.changeRequests).toHaveLength(sampleWorld().changeRequests.length);
    });

    it.each(['octo/../app', '../octo/app', 'octo/-app', 'octo/app?x=1', 'octo/app#', 'octo/a b'])(
      'asks nothing about %j',
      async (repository) => {
        const { provider, auth, server } = await open(sampleWorld());
        const request = { ...REQUEST, repository };
        expect(
          (
            await failureOf(
              provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(request)),
            )
          ).reason,
        ).toMatch(/is not named/);
        expect(server.requests).toEqual([]);
      },
    );

    it('for want of a permission, says which code that has', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault({ kind: 'status', status: 403 }, { match: isCreation });
      const error = await failureOf(
        provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
      );
      expect([error.code, error.reason]).toEqual(['insufficient_scope', 'the permission is missing']);
    });

    it('for the token', async () => {
      const { provider, auth } = await open(sampleWorld());
      const other = { ...auth, token: `${auth.token}x` };
      expect(
        (
          await failureOf(
            provider.changeRequests({ ...other, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
          )
        ).code,
      ).toBe(capabilities.rejection ?? 'unauthorized');
    });

    it('never repeats the token', async () => {
      const world = sampleWorld();
      const { provider, auth, server } = await open(world);
      const message = `no, ${world.token} may not`;
      server.injectFault(
        { kind: 'status', status: 400, body: { message, error: { message }, errors: [{ message }] } },
        { match: isCreation },
      );
      const error = await failureOf(
        provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
      );
      expect(error.reason).toBe('no, *** may not');
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(world.token);
    });
  });

  describe('in trouble', () => {
    it('is not sent twice', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault({ kind: 'status', status: 502 }, { match: isCreation });
      expect(
        (
          await failureOf(
            provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
          )
        ).code,
      ).toBe('unavailable');
      expect(server.requests.filter(isCreation)).toHaveLength(1);
    });

    it('finds what was opened although the answer was lost', async () => {
      const world = sampleWorld();
      const { provider, auth, server } = await open(world);
      server.injectFault({ kind: 'reset' }, { match: opening(world) });
      expect(
        await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
      ).toEqual(lastOf(world));
      expect(server.requests.filter(isCreation)).toHaveLength(1);
    });

    it('finds what somebody else has opened meanwhile', async () => {
      const world = sampleWorld();
      const { provider, auth, server } = await open(world);
      server.injectFault(
        { kind: 'status', status: 409, body: { message: 'exists' } },
        { match: opening(world) },
      );
      expect(
        await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
      ).toEqual(lastOf(world));
    });

    it('asks again for what only reads', async () => {
      const world = sampleWorld();
      const { provider, auth, server } = await open(world);
      server.injectFault({ kind: 'status', status: 502 }, { times: 1 });
      expect(
        await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
      ).toEqual(lastOf(world));
    });

    it('says so when there is no usable answer to the creation', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault({ kind: 'status', status: 201, body: { ok: true } }, { match: isCreation });
      expect(
        (
          await failureOf(
            provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
          )
        ).code,
      ).toBe('unavailable');
    });

    it('asks nothing after the deadline', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      const late = { ...relaxedCall(), deadlineAt: Date.now() - 1 };
      expect(
        (await failureOf(provider.changeRequests({ ...auth, ...late }, (changes) => changes.open(REQUEST))))
          .code,
      ).toBe('timeout');
      expect(server.requests).toEqual([]);
    });

    it('follows nobody to another origin', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      const foreign = await openForeign();
      server.injectFault(
        { kind: 'redirect', location: `${foreign.origin}/elsewhere` },
        { match: isCreation },
      );
      expect(
        (
          await failureOf(
            provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) => changes.open(REQUEST)),
          )
        ).code,
      ).toBe('unavailable');
      expect(foreign.requests).toEqual([]);
    });
  });

  it('sends the token in the authorization header only', async () => {
    const { provider, auth, server } = await open(sampleWorld());
    await provider.changeRequests({ ...auth, ...relaxedCall() }, (changes) =>
      changes.open({ ...REQUEST, targetBranch: null }),
    );
    expect(new Set(server.requests.map(({ headers }) => headers['authorization']))).toEqual(
      new Set([capabilities.authorization(auth.token)]),
    );
    const elsewhere = server.requests.map(({ headers, path, query, body }) =>
      JSON.stringify([{ ...headers, authorization: '' }, path, query.toString(), body]),
    );
    expect(elsewhere.filter((text) => text.includes(sampleWorld().token))).toEqual([]);
  });
}

/** Matches creations, and makes them take effect although the answer is another one. */
function opening(world: FakeWorld): (request: FakeRequest) => boolean {
  return (request) => {
    if (isCreation(request)) {
      addTo(world, { ...REQUEST, targetBranch: 'release' });
      return true;
    }
    return false;
  };
}

function lastOf(world: FakeWorld) {
  const last = world.changeRequests.at(-1);
  return last && { number: last.number, url: pageOf(last) };
}
