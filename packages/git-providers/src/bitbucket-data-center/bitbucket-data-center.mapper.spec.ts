import { describe, expect, it } from '@jest/globals';
import { processorMs } from '../../../../test/support/processor-time.js';
import {
  toFailingChecks,
  toFolder,
  toProviderUser,
  toPullRequest,
  toRepository,
  toUserSlug,
} from './bitbucket-data-center.mapper.js';
import {
  accountSchema,
  buildStatsSchema,
  folderSchema,
  pullRequestPageSchema,
  repositoryPageSchema,
} from './bitbucket-data-center.schema.js';

function readPull(value: unknown) {
  return pullRequestPageSchema.parse({ values: [value] }).values.map(toPullRequest)[0] ?? null;
}

function readRepository(value: unknown) {
  return repositoryPageSchema.parse({ values: [value] }).values.map(toRepository)[0] ?? null;
}

const repository = { slug: 'service', project: { key: 'PROJ' }, archived: false };
const pull = {
  id: 7,
  title: 'Fix it',
  updatedDate: 1_795_000_000_000,
  fromRef: { latestCommit: 'a1' },
  toRef: { repository },
  reviewers: [{ status: 'APPROVED' }],
  properties: { openTaskCount: 0, mergeResult: { outcome: 'CLEAN' } },
};

const UNKNOWN = { conflicts: 'unknown' };
const OPEN = [{ status: 'UNAPPROVED' }];
const merge = (outcome: string): object => ({ properties: { mergeResult: { outcome } } });

describe('toPullRequest', () => {
  it.each<[string, object, object]>([
    ['an unfinished merge', merge('UNKNOWN'), { conflicts: 'unknown' }],
    ['no merge result', { properties: { openTaskCount: 1 } }, { ...UNKNOWN, unresolvedComments: 'yes' }],
    ['no properties', { properties: undefined }, { ...UNKNOWN, unresolvedComments: 'no' }],
    ['work asked for', { reviewers: [...OPEN, { status: 'NEEDS_WORK' }] }, { unresolvedComments: 'yes' }],
    ['no source commit', { fromRef: {} }, { commit: null }],
  ])('notices %s', (_name, change, expected) => {
    expect(readPull({ ...pull, ...change })).toMatchObject(expected);
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['no number', { ...pull, id: null }],
    ['no title', { ...pull, title: null }],
    ['no time', { ...pull, updatedDate: 'today' }],
    ['no repository', { ...pull, toRef: {} }],
  ])('skips an element with %s', (_name, value) => {
    expect(readPull(value)).toBeNull();
  });
});

describe('toRepository', () => {
  const activity = { name: 'PROJ/service', activeAt: null, usable: true };
  const personal = { ...activity, name: '~jane/service' };

  it("does not let a long name hold up the service, as the server may be anybody's", () => {
    const took = processorMs(() => {
      expect(readRepository({ ...repository, slug: `${'a'.repeat(60_000)}!` })).toBeNull();
      expect(readRepository({ ...repository, project: { key: `${'a'.repeat(60_000)}!` } })).toBeNull();
    });
    expect(took).toBeLessThan(3_000);
  });

  it.each<[string, object, object | null]>([
    ['an archived one', { archived: true }, { activity: { ...activity, usable: false }, fork: false }],
    ['a fork', { origin: { slug: 'service' } }, { activity, fork: true }],
    ['a personal one', { project: { key: '~jane' } }, { activity: personal, fork: false }],
    ['a climbing key', { project: { key: '..' } }, null],
    ['a slug with a path', { slug: 'a/b' }, null],
  ])('reads %s', (_name, change, expected) => {
    expect(readRepository({ ...repository, ...change })).toEqual(expected);
  });
});

describe('toFailingChecks', () => {
  it.each<[unknown, string]>([
    [{ a1: { failed: 1, successful: 3 } }, 'yes'],
    [{ a1: { failed: 0, successful: 3 } }, 'no'],
    [{ other: { failed: 1 } }, 'no'],
    [{}, 'no'],
  ])('%j is %s', (stats, expected) => {
    expect(toFailingChecks(buildStatsSchema.parse(stats), 'a1')).toBe(expected);
  });
});

describe('folders and users', () => {
  it.each<[unknown, object]>([
    [
      { children: { isLastPage: true, values: [{ path: { toString: 'AGENTS.md' } }, {}] } },
      { names: ['AGENTS.md'], complete: true },
    ],
    [{ children: { isLastPage: false, values: [] } }, { names: [], complete: false }],
    [null, { names: [], complete: true }],
  ])('reads the folder %j', (value, expected) => {
    expect(toFolder(folderSchema.parse(value))).toEqual(expected);
  });

  it.each([
    ['jane', 'jane'],
    ['Jane.Doe', 'jane.doe'],
    ['jane@example.com', 'jane_example.com'],
    ['../admin', '.._admin'],
  ])('the slug of %s is %s', (name, slug) => {
    expect(toUserSlug(name)).toBe(slug);
  });

  it('reads an account', () => {
    const body = {
      id: 7,
      name: 'jane',
      displayName: 'Jane',
      emailAddress: 'jane@example.com',
      avatarUrl: '/context/avatar',
    };
    expect(toProviderUser(accountSchema.parse(body), 'https://git.example.com/context')).toEqual({
      id: '7',
      login: 'jane',
      avatarUrl: 'https://git.example.com/context/avatar',
      company: null,
      name: 'Jane',
      email: 'jane@example.com',
    });
    expect(accountSchema.safeParse({ name: 'jane' }).success).toBe(false);
  });
});
