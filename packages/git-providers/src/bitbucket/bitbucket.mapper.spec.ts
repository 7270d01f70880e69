import { describe, expect, it } from '@jest/globals';
import {
  isUnresolvedThread,
  toConflicts,
  toEntryNames,
  toFailingChecks,
  toProviderUser,
  toPullRequest,
  toRepository,
} from './bitbucket.mapper.js';
import {
  accountSchema,
  commentsSchema,
  conflictsSchema,
  entriesSchema,
  pullRequestsSchema,
  repositoriesSchema,
  statusesSchema,
  workspacesSchema,
} from './bitbucket.schema.js';

function readPull(value: unknown) {
  return pullRequestsSchema.parse([value]).map(toPullRequest)[0] ?? null;
}

function readRepository(value: unknown) {
  return repositoriesSchema.parse([value]).map(toRepository)[0] ?? null;
}

const pull = {
  id: 7,
  title: 'Fix it',
  draft: false,
  updated_on: '2026-11-20T08:00:00.123456+00:00',
  comment_count: 2,
  task_count: 0,
  source: { commit: { hash: 'aaa' } },
  destination: { commit: { hash: 'bbb' }, repository: { full_name: 'team/service' } },
  participants: [{ state: null }, { state: 'approved' }],
};

describe('toPullRequest', () => {
  it.each<[string, object, object]>([
    ['microseconds', {}, { updatedAt: Date.UTC(2026, 10, 20, 8, 0, 0, 123) }],
    ['open tasks', { task_count: 2 }, { openTasks: 2 }],
    [
      'a reviewer who wants changes',
      { participants: [{ state: 'changes_requested' }] },
      { changesRequested: true },
    ],
    ['a deleted source branch', { source: { commit: null } }, { commits: null }],
    ['no participants', { participants: undefined }, { changesRequested: false }],
  ])('notices %s', (_name, change, expected) => {
    expect(readPull({ ...pull, ...change })).toMatchObject(expected);
  });

  it.each<[string, unknown]>([
    ['no object', 'pull'],
    ['no number', { ...pull, id: '7' }],
    ['no title', { ...pull, title: '' }],
    ['no time', { ...pull, updated_on: 'yesterday' }],
    ['no repository', { ...pull, destination: { repository: null } }],
    ['a name that climbs', { ...pull, destination: { repository: { full_name: '../user' } } }],
    ['a name with a query', { ...pull, destination: { repository: { full_name: 'team/a?b' } } }],
  ])('skips an element with %s', (_name, value) => {
    expect(readPull(value)).toBeNull();
  });
});

describe('toRepository', () => {
  const repository = {
    full_name: 'team/service',
    updated_on: '2026-11-20T08:00:00Z',
    mainbranch: { name: 'main' },
  };
  const ordinary = { name: 'team/service', activeAt: Date.UTC(2026, 10, 20, 8), fork: false, empty: false };
  it.each<[string, object, object | null]>([
    ['an ordinary one', {}, ordinary],
    ['a fork', { parent: { full_name: 'up/stream' } }, { ...ordinary, fork: true }],
    ['an empty one', { mainbranch: null }, { ...ordinary, empty: true }],
    ['one without time', { updated_on: null }, null],
    ['one with a leading dot', { full_name: 'team/.openhands' }, { ...ordinary, name: 'team/.openhands' }],
  ])('reads %s', (_name, change, expected) => {
    expect(readRepository({ ...repository, ...change })).toEqual(expected);
  });
});

function run(key: string, state: string, day: number): object {
  return { key, state, updated_on: `2026-11-0${day}T00:00:00Z` };
}

describe('toFailingChecks', () => {
  it.each<[string, unknown[], string]>([
    ['no check', [], 'no'],
    ['success', [run('ci', 'SUCCESSFUL', 1)], 'no'],
    ['failure', [run('ci', 'FAILED', 1)], 'yes'],
    ['stopped and running', [run('ci', 'STOPPED', 1), run('lint', 'INPROGRESS', 1)], 'no'],
    ['a failure repaired', [run('ci', 'FAILED', 1), run('ci', 'SUCCESSFUL', 2)], 'no'],
    ['a failure repaired, newest first', [run('ci', 'SUCCESSFUL', 2), run('ci', 'FAILED', 1)], 'no'],
    ['a failure running again', [run('ci', 'FAILED', 1), run('ci', 'INPROGRESS', 2)], 'no'],
    ['one of two keys', [run('ci', 'FAILED', 1), run('lint', 'SUCCESSFUL', 2)], 'yes'],
    ['the same moment', [run('ci', 'SUCCESSFUL', 1), run('ci', 'FAILED', 1)], 'yes'],
    ['nonsense', [null, 5, {}], 'no'],
  ])('%s', (_name, statuses, expected) => {
    expect(toFailingChecks(statusesSchema.parse(statuses))).toBe(expected);
  });
});

describe('isUnresolvedThread', () => {
  const open = { id: 1, deleted: false, pending: false, inline: { path: 'a.ts' }, user: { uuid: '{other}' } };
  it.each<[string, object, boolean]>([
    ['an open review comment', {}, true],
    ['of an account that is gone', { user: null }, true],
    ['conversation', { inline: undefined }, false],
    ['an answer', { parent: { id: 3 } }, false],
    ['a resolved one', { resolution: { type: 'comment_resolution' } }, false],
    ['one reopened', { resolution: null, parent: null }, true],
    ['a deleted one', { deleted: true }, false],
    ['an unpublished one', { pending: true }, false],
    ["the author's own", { user: { uuid: '{me}' } }, false],
  ])('%s: %j', (_name, change, expected) => {
    const comments = commentsSchema.parse([{ ...open, ...change }]);
    expect(comments.map((comment) => isUnresolvedThread(comment, '{me}'))).toEqual([expected]);
  });
});

describe('toConflicts', () => {
  it.each<[unknown, string]>([
    [{ values: [], size: 0 }, 'no'],
    [{ values: [{ path: 'package.json', scenario: 'content' }] }, 'yes'],
    [{}, 'unknown'],
    [null, 'unknown'],
  ])('%j is %s', (body, expected) => {
    expect(toConflicts(conflictsSchema.parse(body))).toBe(expected);
  });
});

describe('lists and accounts', () => {
  it('reads workspace slugs and file names', () => {
    expect(workspacesSchema.parse([{ workspace: { slug: 'team' } }, { workspace: null }, null])).toEqual([
      { workspace: { slug: 'team' } },
    ]);
    const paths = ['AGENTS.md', '.openhands/skills/style.md', 'src/'].map((path) => ({ path }));
    expect(toEntryNames(entriesSchema.parse([...paths, {}]))).toEqual(['AGENTS.md', 'style.md', 'src']);
  });

  it.each<[object, object | null]>([
    [
      { account_id: '1', uuid: '{u}', username: 'jane', display_name: 'Jane' },
      { id: '1', login: 'jane', name: 'Jane', email: null, avatarUrl: '', company: null },
    ],
    [
      { uuid: '{u}', nickname: 'jane' },
      { id: '{u}', login: 'jane', name: null, email: null, avatarUrl: '', company: null },
    ],
    [{ uuid: '{u}' }, null],
  ])('reads the account of %j', (value, expected) => {
    expect(toProviderUser(accountSchema.parse(value))).toEqual(expected);
  });
});
