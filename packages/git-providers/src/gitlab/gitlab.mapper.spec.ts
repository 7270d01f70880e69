import { describe, expect, it } from '@jest/globals';
import type { RepositoryActivity } from '../git-provider.js';
import { mapAccount, mapConflicts, mapGraphqlWork, mapIssues } from './gitlab.mapper.js';
import { accountSchema, issuesSchema, workSchema } from './gitlab.schema.js';

const TIME = '2026-11-20T10:00:00Z';
const AT = Date.parse(TIME);

function mergeRequest(changes: object = {}) {
  return {
    iid: '7',
    title: 'Speed up the build',
    draft: false,
    updatedAt: TIME,
    conflicts: false,
    mergeStatusEnum: 'CAN_BE_MERGED',
    project: { fullPath: 'group/sub/project', archived: false, lastActivityAt: TIME },
    headPipeline: null,
    resolvableDiscussionsCount: 0,
    resolvedDiscussionsCount: 0,
    ...changes,
  };
}

function mapWork(data: unknown) {
  return mapGraphqlWork(workSchema.parse(data));
}

function mapListed(issues: unknown[], known: ReadonlyMap<string, RepositoryActivity>) {
  return mapIssues(issuesSchema.parse(issues), known);
}

function mapOne(changes: object) {
  const nodes = [mergeRequest(changes)];
  return mapWork({ currentUser: { authoredMergeRequests: { nodes } } }).changeRequests[0];
}

function page(hasNextPage: boolean) {
  return { currentUser: { authoredMergeRequests: { pageInfo: { hasNextPage }, nodes: [] } } };
}

function tree(...paths: string[]) {
  return { blobs: { nodes: paths.map((path) => ({ path })) } };
}

function probe(changes: object = {}, repository: object = {}) {
  return {
    fullPath: 'group/project',
    archived: false,
    userPermissions: { pushCode: true },
    repository: { empty: false, root: tree('README.md'), micro: tree(), skills: null, ...repository },
    ...changes,
  };
}

function mapProbes(...nodes: unknown[]) {
  const recent = { nodes: [{ fullPath: 'group/project', archived: false, lastActivityAt: TIME }] };
  return mapWork({ recent, probe: { nodes } }).probedRepositories;
}

function issue(changes: object = {}) {
  return {
    iid: 3,
    title: 'Crash on start',
    updated_at: TIME,
    issue_type: 'issue',
    references: { full: 'group/project#3' },
    ...changes,
  };
}

describe('GitLab merge requests', () => {
  it.each([
    ['CANNOT_BE_MERGED', true, 'yes'],
    ['CANNOT_BE_MERGED', false, 'no'],
    ['CAN_BE_MERGED', false, 'no'],
    ['CANNOT_BE_MERGED_RECHECK', true, 'unknown'],
    ['UNCHECKED', true, 'unknown'],
    ['CHECKING', false, 'unknown'],
    [null, true, 'unknown'],
  ])('merge status %s with conflicts %s: %s', (status, conflicts, expected) => {
    expect(mapConflicts(status, conflicts)).toBe(expected);
  });

  it.each([
    [null, 'no'],
    [{ status: 'FAILED' }, 'yes'],
    [{ status: 'CANCELED' }, 'no'],
    [{ status: 'RUNNING' }, 'no'],
    [{ status: 'SUCCESS' }, 'no'],
  ])('pipeline %j: failing %s', (headPipeline, expected) => {
    expect(mapOne({ headPipeline })?.failingChecks).toBe(expected);
  });

  const noCounts = { resolvableDiscussionsCount: undefined, resolvedDiscussionsCount: undefined };
  it.each([
    [{ resolvableDiscussionsCount: 3, resolvedDiscussionsCount: 2 }, 'yes'],
    [{ resolvableDiscussionsCount: 2, resolvedDiscussionsCount: 2 }, 'no'],
    [{ resolvableDiscussionsCount: 1, resolvedDiscussionsCount: 2 }, 'no'],
    [{ resolvableDiscussionsCount: null, resolvedDiscussionsCount: null }, 'unknown'],
    [{ ...noCounts, discussions: { nodes: [{ resolvable: true, resolved: false }] } }, 'yes'],
    [{ ...noCounts, discussions: { nodes: [{ resolvable: false, resolved: false }] } }, 'no'],
    [{ ...noCounts, discussions: { nodes: [] } }, 'no'],
    [{ ...noCounts, discussions: null }, 'unknown'],
  ])('discussions %j: unresolved %s', (changes, expected) => {
    expect(mapOne(changes)?.unresolvedComments).toBe(expected);
  });

  it.each([
    ['no project', { project: null }],
    ['no title', { title: null }],
    ['a number that is none', { iid: 'x' }],
    ['number zero', { iid: '0' }],
    ['no time', { updatedAt: 'yesterday' }],
  ])('with %s are left out alone', (_, changes) => {
    const nodes = [null, mergeRequest(changes), mergeRequest({ iid: '8' })];
    const { changeRequests } = mapWork({ currentUser: { authoredMergeRequests: { nodes } } });
    expect(changeRequests.map(({ number }) => number)).toEqual([8]);
  });

  it('tell when there are more', () => {
    expect([mapWork(page(true)).truncated, mapWork(page(false)).truncated]).toEqual([true, false]);
  });
});

describe('GitLab probes', () => {
  it('take their time from the recent list', () => {
    expect(mapProbes(probe())).toEqual([
      { name: 'group/project', activeAt: AT, usable: true, writable: true, hasAgentInstructions: false },
    ]);
  });

  it.each([
    ['without push permission', probe({ userPermissions: { pushCode: false } })],
    ['archived', probe({ archived: true })],
    ['empty', probe({}, { empty: true, root: null })],
  ])('are not writable when %s', (_, node) => {
    expect(mapProbes(node).map(({ writable }) => writable)).toEqual([false]);
  });

  it.each([
    ['no repository access', probe({ repository: null })],
    ['an unreadable root', probe({}, { root: null })],
  ])('with %s are left out', (_, node) => {
    expect(mapProbes(node)).toEqual([]);
  });
});

describe('GitLab issues', () => {
  const project: RepositoryActivity = { name: 'group/project', activeAt: 1, usable: false };

  it('take the repository from what is known', () => {
    const known = new Map([[project.name, project]]);
    expect(mapListed([issue()], known)).toEqual([
      { repository: project, number: 3, title: 'Crash on start', updatedAt: AT },
    ]);
  });

  it("give an unknown repository its newest issue's time", () => {
    const references = { full: 'group/project#2' };
    const older = issue({ iid: 2, updated_at: '2026-01-01T00:00:00Z', references });
    const known = { name: 'group/project', activeAt: AT, usable: true };
    const found = mapListed([older, issue()], new Map());
    expect(found.map(({ repository }) => repository)).toEqual([known, known]);
  });

  it.each([
    ['issue', 1],
    ['incident', 1],
    ['task', 1],
    [undefined, 1],
    ['test_case', 0],
    ['requirement', 0],
  ])('of type %s: %i kept', (issue_type, count) => {
    expect(mapListed([issue({ issue_type })], new Map())).toHaveLength(count);
  });

  it.each([
    ['no reference', { references: {} }],
    ['a reference to something else', { references: { full: 'group/project#33' } }],
    ['no title', { title: '' }],
    ['no number', { iid: null }],
    ['no time', { updated_at: null }],
  ])('with %s are left out alone', (_, changes) => {
    const other = issue({ iid: 9, references: { full: 'group/project#9' } });
    expect(mapListed([issue(changes), null, other], new Map()).map(({ number }) => number)).toEqual([9]);
  });
});

describe('GitLab users', () => {
  it('map to an account', () => {
    const sent = {
      id: 42,
      username: 'mona',
      name: 'Mona',
      email: '',
      organization: 'ACME',
      avatar_url: null,
    };
    const account = { id: '42', login: 'mona', name: 'Mona', email: null, company: 'ACME', avatarUrl: '' };
    expect(mapAccount(accountSchema.parse(sent))).toEqual(account);
  });

  it.each([[null], [{ id: 42 }], [{ username: 'mona' }], [[]]])('%j is none', (body) => {
    expect(accountSchema.safeParse(body).success).toBe(false);
  });
});
