import { describe, expect, it } from '@jest/globals';
import type {
  AssignedIssue,
  ChangeRequest,
  ProbedRepository,
  ProviderWork,
  RepositoryActivity,
  Signal,
} from '@slipway/git-providers/git-provider.js';
import type { WorkItem } from '@slipway/git-providers/git-servers.js';
import {
  classifyChangeRequest,
  cleanTitle,
  collectCandidates,
  lacksAgentInstructions,
} from './collect-candidates.js';

const SIGNALS: Signal[] = ['yes', 'no', 'unknown'];

describe('classifyChangeRequest', () => {
  it.each(
    SIGNALS.flatMap((conflicts) =>
      SIGNALS.flatMap((failingChecks) =>
        SIGNALS.flatMap((unresolvedComments) =>
          [true, false].map((draft) => {
            const expected =
              conflicts === 'yes'
                ? 'MERGE_CONFLICTS'
                : failingChecks === 'yes'
                  ? 'FAILING_CHECKS'
                  : unresolvedComments === 'yes'
                    ? 'UNRESOLVED_COMMENTS'
                    : draft
                      ? null
                      : 'OPEN_PR';
            return { conflicts, failingChecks, unresolvedComments, draft, expected };
          }),
        ),
      ),
    ),
  )(
    'conflicts=$conflicts checks=$failingChecks comments=$unresolvedComments draft=$draft is $expected',
    ({ expected, ...change }) => {
      expect(classifyChangeRequest(change)).toBe(expected);
    },
  );
});

describe('lacksAgentInstructions', () => {
  it.each([
    { usable: true, writable: true, hasAgentInstructions: false, expected: true },
    { usable: true, writable: true, hasAgentInstructions: true, expected: false },
    { usable: true, writable: false, hasAgentInstructions: false, expected: false },
    { usable: false, writable: true, hasAgentInstructions: false, expected: false },
  ])(
    'usable=$usable writable=$writable instructions=$hasAgentInstructions: $expected',
    ({ expected, ...facts }) => {
      expect(lacksAgentInstructions({ name: 'a/b', activeAt: 1, ...facts })).toBe(expected);
    },
  );
});

describe('cleanTitle', () => {
  it.each([
    ['Fix the login', 'Fix the login'],
    ['Fix\r\nthe\u0000 login\u007f', 'Fixthe login'],
    ['\u001b[31mred\u001b[0m', '[31mred[0m'],
    ['  spaces  ', '  spaces  '],
    ['Übergröße 漢字 🎉', 'Übergröße 漢字 🎉'],
    ['', ''],
  ])('%j becomes %j', (given, expected) => {
    expect(cleanTitle(given)).toBe(expected);
  });

  it('keeps at most 256 characters and never half of one', () => {
    expect(cleanTitle('x'.repeat(300))).toBe('x'.repeat(256));
    expect(cleanTitle(`x${'🎉'.repeat(255)}🎉🎉`)).toBe(`x${'🎉'.repeat(255)}`);
  });
});

const POLICY = { freshMs: 60_000, freshWhileComputingMs: 15_000, maxChangeRequests: 50 };
const GITHUB = {
  provider: 'github',
  kind: 'github',
  server: 'https://api.github.com',
  policy: POLICY,
  pageOf: (name: string, item: WorkItem, number: number) => `${name} ${item} ${number}`,
} as const;

function repository(name: string, activeAt: number | null = 1, usable = true): RepositoryActivity {
  return { name, activeAt, usable };
}

function change(overrides: Partial<ChangeRequest> = {}): ChangeRequest {
  return {
    repository: repository('acme/app'),
    number: 1,
    title: 'A change',
    updatedAt: 10,
    draft: false,
    conflicts: 'no',
    failingChecks: 'no',
    unresolvedComments: 'no',
    ...overrides,
  };
}

function issue(overrides: Partial<AssignedIssue> = {}): AssignedIssue {
  return { repository: repository('acme/app'), number: 1, title: 'An issue', updatedAt: 10, ...overrides };
}

function probed(
  name: string,
  activeAt: number | null,
  overrides: Partial<ProbedRepository> = {},
): ProbedRepository {
  return { ...repository(name, activeAt), writable: true, hasAgentInstructions: false, ...overrides };
}

function work(parts: Partial<ProviderWork>): ProviderWork {
  return {
    changeRequests: [],
    issues: [],
    recentRepositories: [],
    probedRepositories: [],
    truncated: false,
    gaps: [],
    ...parts,
  };
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

describe('collectCandidates', () => {
  it('makes one task of each change request, issue and repository without instructions', () => {
    const { candidates, truncated } = collectCandidates(
      GITHUB,
      work({
        changeRequests: [change({ number: 5, conflicts: 'yes', title: 'A\u0000b' })],
        issues: [issue({ number: 6 })],
        probedRepositories: [probed('acme/app', 3), probed('acme/done', 4, { hasAgentInstructions: true })],
      }),
    );

    expect(truncated).toBe(false);
    expect(
      candidates.map(({ type, repository: name, number, title, url }) => [type, name, number, title, url]),
    ).toEqual([
      ['MERGE_CONFLICTS', 'acme/app', 5, 'Ab', 'acme/app change 5'],
      ['OPEN_ISSUE', 'acme/app', 6, 'An issue', 'acme/app issue 6'],
      ['CREATE_MICROAGENT', 'acme/app', 0, 'Add agent instructions to acme/app', 'acme/app change 0'],
    ]);
  });

  it('leaves out drafts without a problem', () => {
    const { candidates } = collectCandidates(GITHUB, work({ changeRequests: [change({ draft: true })] }));

    expect(candidates).toEqual([]);
  });

  it.each([
    ['the item says it', work({ issues: [issue({ repository: repository('acme/app', 1, false) })] })],
    [
      'the recent list says it',
      work({ issues: [issue()], recentRepositories: [repository('Acme/App', 1, false)] }),
    ],
  ])('drops items of archived or disabled repositories: %s', (_name, given) => {
    expect(collectCandidates(GITHUB, given).candidates).toEqual([]);
  });

  it('drops items outside the hundred repositories with the newest activity', () => {
    const recentRepositories = many(100, (index) => repository(`acme/r${index}`, 1000 + index));
    const { candidates } = collectCandidates(
      GITHUB,
      work({
        recentRepositories,
        issues: [
          issue({ number: 1, repository: repository('acme/old', 5) }),
          issue({ number: 2, repository: repository('upstream/new', 5000) }),
          issue({ number: 3, repository: repository('acme/r1', 1001) }),
        ],
      }),
    );

    // The upstream repository is newer than the oldest of the list and takes its place.
    expect(candidates.map(({ number }) => number)).toEqual([2, 3]);
  });

  it.each([50, 20])('keeps the %d newest change requests where the policy says so, and tells', (max) => {
    const { candidates, truncated } = collectCandidates(
      { ...GITHUB, policy: { ...POLICY, maxChangeRequests: max } },
      work({ changeRequests: many(max + 1, (index) => change({ number: index + 1, updatedAt: index })) }),
    );

    expect(truncated).toBe(true);
    expect(candidates).toHaveLength(max);
    expect(candidates.map(({ number }) => number)).not.toContain(1);
  });

  it('keeps the three newest repositories without instructions', () => {
    const { candidates, truncated } = collectCandidates(
      GITHUB,
      work({ probedRepositories: many(5, (index) => probed(`acme/r${index}`, index)) }),
    );

    expect(truncated).toBe(true);
    expect(candidates.map(({ repository: name }) => name)).toEqual(['acme/r4', 'acme/r3', 'acme/r2']);
  });

  it('passes on that the provider had more', () => {
    expect(collectCandidates(GITHUB, work({ truncated: true })).truncated).toBe(true);
  });

  it('gives a repository without a time of its own the time of its newest item', () => {
    const { candidates } = collectCandidates(
      { ...GITHUB, provider: 'bitbucket', kind: 'bitbucket_dc', server: 'https://git.example.com' },
      work({
        changeRequests: [
          change({ repository: repository('P/a', null), updatedAt: 7 }),
          change({ repository: repository('P/a', null), number: 2, updatedAt: 9 }),
        ],
        probedRepositories: [probed('P/b', null)],
      }),
    );

    expect(candidates.map(({ repository: name, repositoryActiveAt }) => [name, repositoryActiveAt])).toEqual([
      ['P/a', 9],
      ['P/a', 9],
      ['P/b', -Infinity],
    ]);
  });

  it('tells an issue from a change request with the same number, and forges by server', () => {
    const identities = ['https://api.github.com', 'https://git.example.com'].flatMap((server) =>
      collectCandidates(
        { ...GITHUB, server },
        work({ issues: [issue()], changeRequests: [change()] }),
      ).candidates.map(({ identity }) => identity),
    );

    expect(new Set(identities).size).toBe(4);
  });
});
