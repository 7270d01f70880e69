import { describe, expect, it } from '@jest/globals';
import type { ChangeRequest, ProviderWork, RepositoryActivity } from '../src/git-provider.js';
import type {
  FakeChangeRequest,
  FakeIssue,
  FakeRepository,
  FakeWorld,
} from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import {
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
} from './git-provider.harness.js';

/** What a healthy host contains arrives in our words, the same from every host. */
export function describeWork(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const open = harnessOpener(setUp);
  const workOf = async (world: FakeWorld): Promise<ProviderWork> => {
    const { provider, call } = await open(world);
    return await provider.findWork(call);
  };

  describe('the whole world', () => {
    it('brings every change request with its repository, title and signals', async () => {
      const world = sampleWorld();
      const { changeRequests } = await workOf(world);
      expect(changeRequests.toSorted(byRepositoryAndNumber)).toEqual(
        world.changeRequests
          .map((change) => ({
            repository: activityOf(world, change.repository, capabilities),
            number: change.number,
            title: change.title,
            updatedAt: Date.parse(change.updatedAt),
            draft: change.draft ?? false,
            conflicts: change.conflicts === 'yes' ? 'yes' : 'no',
            failingChecks: change.checks === 'failing' ? 'yes' : 'no',
            unresolvedComments: (change.unresolved ?? 'none') === 'none' ? 'no' : 'yes',
          }))
          .toSorted(byRepositoryAndNumber),
      );
    });

    it(`brings ${capabilities.issues ? 'every' : 'no'} assigned issue`, async () => {
      const world = sampleWorld();
      const { issues } = await workOf(world);
      expect(issues.toSorted(byRepositoryAndNumber)).toEqual(
        (capabilities.issues ? world.issues : [])
          .map((issue) => ({
            repository: activityOf(world, issue.repository, capabilities),
            number: issue.number,
            title: issue.title,
            updatedAt: Date.parse(issue.updatedAt),
          }))
          .toSorted(byRepositoryAndNumber),
      );
    });

    it('brings the recent repositories, newest first where the host tells times', async () => {
      const world = sampleWorld();
      const { recentRepositories } = await workOf(world);
      const expected = ['octo/app', 'octo/library', 'mona/notes'].map((name) =>
        activityOf(world, name, capabilities),
      );
      expect(capabilities.repositoryTimes ? recentRepositories : recentRepositories.toSorted(byName)).toEqual(
        capabilities.repositoryTimes ? expected : expected.toSorted(byName),
      );
    });

    it('tells which repositories lack agent instructions', async () => {
      const { probedRepositories } = await workOf(sampleWorld());
      expect(
        probedRepositories
          .map(({ name, writable, hasAgentInstructions }) => ({ name, writable, hasAgentInstructions }))
          .toSorted(byName),
      ).toEqual([
        { name: 'mona/notes', writable: true, hasAgentInstructions: true },
        { name: 'octo/app', writable: true, hasAgentInstructions: false },
        { name: 'octo/library', writable: true, hasAgentInstructions: true },
      ]);
    });

    it('is complete', async () => {
      expect(await workOf(sampleWorld())).toMatchObject({ truncated: false, gaps: [] });
    });

    it('may be empty', async () => {
      const work = await workOf({ ...sampleWorld(), repositories: [], changeRequests: [], issues: [] });
      expect(work).toEqual({
        changeRequests: [],
        issues: [],
        recentRepositories: [],
        probedRepositories: [],
        truncated: false,
        gapReasons: {},
        gaps: [],
      });
    });
  });

  it('brings the signals of a change request', async () => {
    const signals: [Partial<FakeChangeRequest>, Partial<ChangeRequest>][] = [
      [{ conflicts: 'yes' }, { conflicts: 'yes' }],
      [{ conflicts: 'no' }, { conflicts: 'no' }],
      [{ conflicts: 'unknown' }, { conflicts: 'unknown' }],
      [{ checks: 'none' }, { failingChecks: 'no' }],
      [{ checks: 'passing' }, { failingChecks: 'no' }],
      [{ checks: 'pending' }, { failingChecks: 'no' }],
      [{ checks: 'failing' }, { failingChecks: 'yes' }],
      [{ checks: 'error' }, { failingChecks: 'yes' }],
      [{ unresolved: 'none' }, { unresolvedComments: 'no' }],
      [{ unresolved: 'thread' }, { unresolvedComments: 'yes' }],
      [{ unresolved: 'changes_requested' }, { unresolvedComments: 'yes' }],
      [{ unresolved: 'task' }, { unresolvedComments: 'yes' }],
      [{ draft: true }, { draft: true }],
      [
        { draft: true, conflicts: 'yes' },
        { draft: true, conflicts: 'yes' },
      ],
    ];
    const world = worldWithRepository({});
    world.changeRequests = signals.map(([given], index) => ({ ...numbered(index), ...given }));
    const { changeRequests } = await workOf(world);
    expect(changeRequests.toSorted((a, b) => a.number - b.number)).toEqual(
      signals.map(([, expected]) => expect.objectContaining(expected)),
    );
  });

  describe('a repository to add agent instructions to', () => {
    const { archives, forks, mirrors } = capabilities;
    type Case = [string, boolean, Partial<FakeRepository>];
    const cases: Case[] = [
      ['no instructions', true, {}],
      ['claude.md in lower case', false, { rootEntries: ['src', 'claude.md'] }],
      ['a microagent', false, { rootEntries: ['.openhands'], microagents: ['style.md'] }],
      ['a skill', false, { rootEntries: ['.openhands'], skills: ['deploy.md'] }],
      ['only a README of microagents', true, { rootEntries: ['.openhands'], microagents: ['README.md'] }],
      ['no Markdown among skills', true, { rootEntries: ['.openhands'], skills: ['setup.sh'] }],
      ['the name .openhands', false, { name: 'octo/.openhands' }],
      ['nothing in it', false, { empty: true }],
      ['reading permission only', false, { writable: false }],
      ...(archives ? [['an archive', false, { archived: true }] satisfies Case] : []),
      ...(forks ? [['a fork', false, { fork: true }] satisfies Case] : []),
      ...(mirrors ? [['a mirror', false, { mirror: true }] satisfies Case] : []),
    ];

    it.each(cases)('%s: %s', async (_name, wanted, repository) => {
      const { probedRepositories } = await workOf(worldWithRepository(repository));
      const suggestible = probedRepositories.filter(
        ({ usable, writable, hasAgentInstructions }) => usable && writable && !hasAgentInstructions,
      );
      expect(suggestible.map(({ name }) => name)).toEqual(wanted ? ['octo/app'] : []);
    });
  });

  describe('limits', () => {
    const max = capabilities.maxChangeRequests;

    it.each([
      [max + 1, true],
      [max, false],
    ])(`of %d change requests are the newest ${max}, and whether there are more: %s`, async (count, more) => {
      const world = worldWithRepository({});
      world.changeRequests = Array.from({ length: count }, (_unused, index) => numbered(index));
      const { changeRequests, truncated } = await workOf(world);
      expect({ truncated, numbers: changeRequests.map(({ number }) => number).toSorted(ascending) }).toEqual({
        truncated: more,
        numbers: Array.from({ length: max }, (_unused, index) => index + 1 + count - max),
      });
    });
  });

  (capabilities.issues ? describe : describe.skip)('issues', () => {
    it('reads the newest 50 and says that there are more', async () => {
      const world = worldWithRepository({});
      world.issues = Array.from({ length: 51 }, (_unused, index) => numbered(index));
      const { issues, truncated } = await workOf(world);
      expect({ truncated, numbers: issues.map(({ number }) => number).toSorted(ascending) }).toEqual({
        truncated: true,
        numbers: Array.from({ length: 50 }, (_unused, index) => index + 2),
      });
    });
  });

  (capabilities.archives ? describe : describe.skip)('archived repositories', () => {
    it('are not usable, and neither is what they contain', async () => {
      const world = sampleWorld();
      for (const repository of world.repositories) {
        repository.archived = true;
      }
      const work = await workOf(world);
      const all: RepositoryActivity[] = [
        ...work.recentRepositories,
        ...work.probedRepositories,
        ...work.changeRequests.map(({ repository }) => repository),
        ...work.issues.map(({ repository }) => repository),
      ];
      expect(all.filter(({ usable }) => usable)).toEqual([]);
    });
  });
}

function worldWithRepository(repository: Partial<FakeRepository>): FakeWorld {
  return {
    ...sampleWorld(),
    repositories: [{ name: 'octo/app', activeAt: '2026-11-20T16:45:12Z', ...repository }],
    changeRequests: [],
    issues: [],
  };
}

/** The higher the index, the newer. */
function numbered(index: number): FakeChangeRequest & FakeIssue {
  return {
    repository: 'octo/app',
    number: index + 1,
    title: `Change ${index + 1}`,
    updatedAt: new Date(Date.UTC(2026, 10, 1, 0, index)).toISOString(),
  };
}

function activityOf(
  world: FakeWorld,
  name: string,
  capabilities: GitProviderCapabilities,
): RepositoryActivity {
  const repository = world.repositories.find((candidate) => candidate.name === name);
  const activeAt = Date.parse(repository?.activeAt ?? '');
  return { name, activeAt: capabilities.repositoryTimes ? activeAt : null, usable: true };
}

function byRepositoryAndNumber(
  a: { repository: RepositoryActivity; number: number },
  b: { repository: RepositoryActivity; number: number },
): number {
  return byName(a.repository, b.repository) || a.number - b.number;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

function ascending(a: number, b: number): number {
  return a - b;
}
