import { describe, expect, it } from '@jest/globals';
import type { Forks } from '../src/forks.js';
import type { NewChangeRequest } from '../src/git-provider.js';
import { addCheck } from '../../../test/fakes/fake-followed.js';
import { forkInto } from '../../../test/fakes/fake-forks.js';
import { repositoryIn } from '../../../test/fakes/fake-change-requests.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
} from './git-provider.harness.js';

const FROM_FORK = {
  repository: 'octo/app',
  number: 12,
  fork: 'jane/app',
  sourceBranch: 'parser',
  targetBranch: 'release',
};
const REQUEST: NewChangeRequest = {
  repository: 'octo/app',
  sourceBranch: 'fix/it',
  targetBranch: 'main',
  title: 'Fix it',
  body: 'Because.',
  draft: false,
};

/** Where people work who may not push to a repository. */
export function describeForks(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const openHarness = harnessOpener(setUp);
  const { owner, ref } = capabilities.forking;
  const own = `${owner}/app`;
  const open = async (repository: Partial<FakeRepository> = {}, change: Partial<FakeChangeRequest> = {}) => {
    const world = sampleWorld();
    Object.assign(repositoryIn(world, 'octo/app') ?? {}, repository);
    world.repositories.push({
      name: 'jane/app',
      activeAt: '2026-11-20T16:45:12Z',
      forkOf: 'octo/app',
      writable: false,
    });
    Object.assign(world.changeRequests[0] ?? {}, change);
    const harness = await openHarness(world);
    const ask = <T>(work: (forks: Forks) => Promise<T>): Promise<T> =>
      harness.provider.forks(harness.call, work);
    return { ...harness, ask };
  };

  describe('the branch of a change request', () => {
    it.each<[string, Partial<FakeChangeRequest>, string | null]>([
      ['a fork', FROM_FORK, 'jane/app'],
      ['a fork that is deleted', { ...FROM_FORK, fork: 'gone/app' }, null],
      ['the repository itself', { ...FROM_FORK, fork: undefined }, 'octo/app'],
    ])('lies in %s', async (_where, change, repository) => {
      const { ask } = await open({}, change);
      expect(await ask((forks) => forks.head('octo/app', 12))).toEqual({
        repository,
        branch: 'parser',
        targetBranch: 'release',
        ref: ref(12),
        allowsMaintainers: false,
      });
    });

    (capabilities.forking.maintainers ? it : it.skip)('may be open to maintainers', async () => {
      const { ask } = await open({}, { ...FROM_FORK, allowsMaintainers: true });
      expect(await ask((forks) => forks.head('octo/app', 12))).toMatchObject({ allowsMaintainers: true });
    });

    it('makes no difference to the work that is found', async () => {
      const found = async (change: Partial<FakeChangeRequest>) => {
        const { provider, call } = await open({}, change);
        const { changeRequests } = await provider.findWork(call);
        return changeRequests.find(({ number }) => number === 12);
      };
      const ofFork = await found(FROM_FORK);
      expect(ofFork?.repository.name).toBe('octo/app');
      expect(ofFork).toEqual(await found({ ...FROM_FORK, fork: undefined }));
    });

    it('is unknown where there is no such change request', async () => {
      const { ask } = await open();
      expect(await ask((forks) => forks.head('octo/app', 4_217))).toBeNull();
    });
  });

  it.each<[string, Partial<FakeRepository>, object]>([
    ['push and fork', {}, { push: true, fork: true }],
    ['fork only', { writable: false }, { push: false, fork: true }],
    ['neither, of a private one', { writable: false, forking: 'forbidden' }, { push: false, fork: false }],
  ])('tells whether one may %s', async (_what, repository, expected) => {
    const { ask } = await open(repository);
    expect(await ask((forks) => forks.rights('octo/app'))).toEqual(expected);
    expect((await failureOf(ask((forks) => forks.rights('octo/none')))).reason).toMatch(
      /does not exist|no such repository/,
    );
  });

  describe("the user's fork", () => {
    it('is made, waited for, and found again', async () => {
      const { ask, world } = await open({ writable: false, forkLookups: 2 });
      expect(await ask((forks) => forks.own('octo/app'))).toBe(own);
      expect(repositoryIn(world, own)?.lookups).toBe(0);
      expect(await ask((forks) => forks.own('octo/app'))).toBe(own);
      expect(namesOf(world)).toEqual(['jane/app', own].toSorted());
    });

    it('that is behind stays as it is', async () => {
      const { ask, world } = await open({ branches: ['new'] });
      world.repositories.push({
        name: own,
        activeAt: '2020-11-20T16:45:12Z',
        forkOf: 'octo/app',
        branches: [],
      });
      expect(await ask((forks) => forks.own('octo/app'))).toBe(own);
      expect(repositoryIn(world, own)?.branches).toEqual([]);
    });

    it('gets another name where the user has a repository of that name', async () => {
      const { ask, world } = await open();
      world.repositories.push({ name: own, activeAt: '2020-11-20T16:45:12Z' });
      expect(await ask((forks) => forks.own('octo/app'))).toBe(`${own}-1`);
    });

    it('is found where another request was quicker', async () => {
      const { ask, world, server } = await open();
      const upstream = repositoryIn(world, 'octo/app');
      const message = 'That name already exists.';
      server.injectFault(
        { kind: 'status', status: 409, body: { message, error: { message }, errors: [{ message }] } },
        {
          times: 1,
          match: ({ method }) =>
            method === 'POST' && upstream !== undefined && typeof forkInto(world, upstream, own) !== 'string',
        },
      );
      expect(await ask((forks) => forks.own('octo/app'))).toBe(own);
      expect(namesOf(world)).toEqual(['jane/app', own].toSorted());
    });

    it('is not made where that is forbidden, and says why', async () => {
      const { ask, world } = await open({ forking: 'forbidden' });
      const { reason } = await failureOf(ask((forks) => forks.own('octo/app')));
      expect(reason).toMatch(/fork|forbidden|permission/i);
      expect(namesOf(world)).toEqual(['jane/app']);
    });

    it('is not waited for without end', async () => {
      const { ask } = await open({ forkLookups: 1_000 });
      const { reason } = await failureOf(ask((forks) => forks.own('octo/app')));
      expect(reason).toBe(`the fork ${own} is still being made: try again in a minute`);
    });
  });

  describe('a change request across', () => {
    it('is opened, found again, and not taken for one of the same branch name', async () => {
      const { provider, call, world } = await open({ branches: ['fix/it'] });
      world.repositories.push({
        name: own,
        activeAt: '2026-11-20T16:45:12Z',
        forkOf: 'octo/app',
        branches: ['fix/it'],
      });
      const ask = (change: Partial<NewChangeRequest> = {}) =>
        provider.changeRequests(call, (changes) => changes.open({ ...REQUEST, ...change }));
      const within = await ask();
      const across = await ask({ fork: own });
      expect(across.number).toBe(within.number + 1);
      expect(world.changeRequests.at(-1)).toMatchObject({ ...REQUEST, fork: own });
      expect(await ask({ fork: own })).toEqual(across);
      expect(await ask()).toEqual(within);
    });

    it('is followed with the output of its checks', async () => {
      const { provider, call, world } = await open({}, FROM_FORK);
      const [change] = world.changeRequests;
      const ref = { repository: 'octo/app', number: 12 };
      const check = change && addCheck(change, 'unit', { state: 'failed', log: 'FAIL: no' });
      const [found] = await provider.changeRequests(call, (changes) => changes.read([ref]));
      const [shown] = found?.checks ?? [];
      expect(shown).toMatchObject({ name: check?.name, state: 'failed' });
      const output = shown && (await provider.changeRequests(call, (changes) => changes.output(ref, shown)));
      expect(output).toBe(capabilities.follow.logs ? 'FAIL: no' : '');
    });

    it('from a branch that the fork lacks is refused', async () => {
      const { provider, call, world } = await open({ branches: ['fix/it'] });
      world.repositories.push({ name: own, activeAt: '2026-11-20T16:45:12Z', forkOf: 'octo/app' });
      const asked = provider.changeRequests(call, (changes) => changes.open({ ...REQUEST, fork: own }));
      expect((await failureOf(asked)).reason).toMatch(/source|head|branch/);
    });
  });
}

function namesOf(world: FakeWorld): string[] {
  return world.repositories.flatMap(({ name, forkOf }) => (forkOf === undefined ? [] : [name])).toSorted();
}
