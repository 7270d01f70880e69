import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { GitProviderError, NewChangeRequest, OpenedChangeRequest } from '../src/git-provider.js';
import { addTo, pageOf } from '../../../test/fakes/fake-change-requests.js';
import type { FakeRequest } from '../../../test/fakes/fake-server.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import {
  failureOf,
  foreignServerOpener,
  type GitProviderCapabilities,
  type GitProviderHarness,
  type GitProviderSetUp,
  harnessOpener,
  type Opened,
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

interface Asked extends GitProviderHarness, Opened {
  /** Opens the usual one, changed. */
  ask: (change?: Partial<NewChangeRequest>, call?: Opened['call']) => Promise<OpenedChangeRequest>;
}

/** Opening is idempotent, is sent once, and says why it was refused. */
export function describeChangeRequests(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const openForeign = foreignServerOpener();
  const openHarness = harnessOpener(setUp);
  const open = async (): Promise<Asked> => {
    const harness = await openHarness();
    const ask: Asked['ask'] = (change = {}, call = harness.call) =>
      harness.provider.changeRequests(call, (changes) => changes.open({ ...REQUEST, ...change }));
    return { ...harness, ask };
  };

  it('opens one', async () => {
    const { ask, world } = await open();
    expect(await ask()).toEqual({ number: 16, url: 'https://code.example/octo/app/16' });
    expect(world.changeRequests.at(-1)).toMatchObject({ ...REQUEST, number: 16 });
  });

  it('opens a draft', async () => {
    const { ask, world } = await open();
    await ask({ draft: true });
    expect(world.changeRequests.at(-1)).toMatchObject({ title: REQUEST.title, draft: true });
  });

  it('takes the default branch where none is named', async () => {
    const { ask, world } = await open();
    expect(await ask({ repository: 'octo/library', targetBranch: null })).toMatchObject({ number: 13 });
    expect(world.changeRequests.at(-1)).toMatchObject({ targetBranch: 'trunk' });
  });

  it('answers the open one when asked again, leaves it as it is, and opens another for another target', async () => {
    const { ask, world } = await open();
    const first = await ask();
    expect(await ask({ title: 'Another title', body: 'Another text', draft: true })).toEqual(first);
    expect(world.changeRequests).toHaveLength(sampleWorld().changeRequests.length + 1);
    expect(world.changeRequests.at(-1)).toMatchObject(REQUEST);
    expect((await ask({ targetBranch: 'main' })).number).toBe(first.number + 1);
  });

  describe('refused', () => {
    it.each([
      ['a branch that is not there', { sourceBranch: 'no-such-branch' }, /(source|head|branch)/],
      ['a target that is not there', { targetBranch: 'no-such-branch' }, /(target|base|destination|branch)/],
      ['nothing to merge', { targetBranch: 'fix/it' }, /(commits|same|changes|up-to-date)/],
      ['an unknown repository', { repository: 'octo/none' }, /the repository .*does not exist/],
      ['its default branch', { repository: 'octo/none', targetBranch: null }, /does not exist/],
    ])('for %s, says why', async (_name, change, reason) => {
      const { ask, world } = await open();
      const error = await failureOf(ask(change));
      expect([error.code, error.reason]).toEqual(['unsupported', expect.stringMatching(reason)]);
      expect(world.changeRequests).toHaveLength(sampleWorld().changeRequests.length);
    });

    it('for what is no name, asks nothing', async () => {
      const { ask, server } = await open();
      for (const repository of ['octo', 'octo/../app', 'octo/app?x=1']) {
        const error = await failureOf(ask({ repository }));
        expect([error.code, error.reason]).toEqual(['unsupported', expect.stringMatching(/is not named/)]);
      }
      expect(server.requests).toEqual([]);
    });

    it('for want of a permission, says which code that has', async () => {
      const { ask, server } = await open();
      server.injectFault({ kind: 'status', status: 403 }, { match: isCreation });
      const error = await failureOf(ask());
      expect([error.code, error.reason]).toEqual(['insufficient_scope', 'the permission is missing']);
    });

    it('for the token', async () => {
      const { ask, otherCall } = await open();
      expect((await failureOf(ask({}, otherCall))).code).toBe(capabilities.rejection ?? 'unauthorized');
    });

    it('never repeats the token', async () => {
      const { ask, world, server } = await open();
      const message = `no, ${world.token} may not`;
      server.injectFault(
        { kind: 'status', status: 400, body: { message, error: { message }, errors: [{ message }] } },
        { match: isCreation },
      );
      const error = await failureOf(ask());
      expect(error.reason).toBe('no, *** may not');
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(world.token);
    });
  });

  describe('in trouble', () => {
    it('is not sent twice', async () => {
      const { ask, server } = await open();
      server.injectFault({ kind: 'status', status: 502 }, { match: isCreation });
      expect((await failureOf(ask())).code).toBe('unavailable');
      expect(server.requests.filter(isCreation)).toHaveLength(1);
    });

    it.each([
      ['although the answer was lost', { kind: 'reset' }],
      ['by somebody else meanwhile', { kind: 'status', status: 409, body: { message: 'exists' } }],
    ] as const)('finds what was opened %s', async (_how, fault) => {
      const { ask, world, server } = await open();
      server.injectFault(fault, { match: opening(world) });
      expect(await ask()).toEqual(lastOf(world));
      expect(server.requests.filter(isCreation)).toHaveLength(1);
    });

    // https://github.com/kdlbs/kandev/pull/3134
    it.each([1, 2])('asks once more where the push is not known yet (%d times)', async (missesPush) => {
      const { ask, world, server } = await open();
      Object.assign(world.repositories.find(({ name }) => name === 'octo/app') ?? {}, { missesPush });
      const opened = await ask().catch(({ code }: GitProviderError) => code);
      expect(opened).toEqual(missesPush === 1 ? lastOf(world) : 'unsupported');
      expect(server.requests.filter(isCreation)).toHaveLength(2);
    });

    it('finds what was opened although the answer was lost to the second time, too', async () => {
      const { ask, world, server } = await open();
      Object.assign(world.repositories.find(({ name }) => name === 'octo/app') ?? {}, { missesPush: 1 });
      const isSecond = (): boolean => server.requests.filter(isCreation).length === 2;
      const opens = opening(world);
      server.injectFault({ kind: 'reset' }, { match: (request) => isSecond() && opens(request) });
      expect(await ask()).toEqual(lastOf(world));
      expect(server.requests.filter(isCreation)).toHaveLength(2);
    });

    it('asks again for what only reads', async () => {
      const { ask, world, server } = await open();
      server.injectFault({ kind: 'status', status: 502 }, { times: 1 });
      expect(await ask()).toEqual(lastOf(world));
    });

    it('says so when there is no usable answer to the creation', async () => {
      const { ask, server } = await open();
      server.injectFault({ kind: 'status', status: 201, body: { ok: true } }, { match: isCreation });
      expect((await failureOf(ask())).code).toBe('unavailable');
    });

    it('asks nothing after the deadline', async () => {
      const { ask, call, server } = await open();
      const late = { ...call, deadlineAt: Date.now() - 1 };
      expect((await failureOf(ask({}, late))).code).toBe('timeout');
      expect(server.requests).toEqual([]);
    });

    it('follows nobody to another origin', async () => {
      const { ask, server } = await open();
      const foreign = await openForeign();
      const location = `${foreign.origin}/elsewhere`;
      server.injectFault({ kind: 'redirect', location }, { match: isCreation });
      expect((await failureOf(ask())).code).toBe('unavailable');
      expect(foreign.requests).toEqual([]);
    });
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
