import { describe, expect, it } from '@jest/globals';
import { dataCenterReasons, toBranchName } from './bitbucket-data-center/bitbucket-data-center.mapper.js';
import {
  branchSchema as dataCenterBranchSchema,
  refusalSchema as dataCenterRefusalSchema,
} from './bitbucket-data-center/bitbucket-data-center.schema.js';
import { bitbucketReasons, openBetween } from './bitbucket/bitbucket.mapper.js';
import { refusalSchema as bitbucketRefusalSchema } from './bitbucket/bitbucket.schema.js';
import { boundFollowed, logTail, readInBatches, toOpenedChangeRequest } from './change-requests.js';
import { type FollowedChangeRequest, type FollowedComment, GitProviderError } from './git-provider.js';
import { githubReasons } from './github/github.mapper.js';
import { refusalSchema as githubRefusalSchema } from './github/github.schema.js';
import { gitlabReasons, newMergeRequest } from './gitlab/gitlab.mapper.js';
import { refusalSchema as gitlabRefusalSchema } from './gitlab/gitlab.schema.js';
import { providerReason } from './provider-errors.js';

const INVALID = { resource: 'PullRequest', field: 'head', code: 'invalid' };
const NO_SOURCE = 'the branch with the changes is not on the server';
const NO_COMMITS = { code: 'custom', message: 'No commits between a and b' };
const BAD_REQUEST = {
  message: 'Bad request',
  detail: 'twice',
  fields: { source: ['branch not found'], title: 'blank' },
};
const BLANK = { context: 'title', message: 'may not be blank' };

describe('why a change was refused', () => {
  it.each<[unknown, ...string[]]>([
    [{ message: 'Validation Failed', errors: [INVALID] }, `${NO_SOURCE} (head: invalid)`],
    [{ message: 'Validation Failed', errors: [{ ...INVALID, field: 'title' }] }, 'title: invalid'],
    [{ message: 'Validation Failed', errors: [NO_COMMITS] }, 'No commits between a and b'],
    [{ message: 'Validation Failed', errors: ['a plain text', 5, null] }, 'a plain text'],
    [{ message: 'Repository was archived so is read-only.' }, 'Repository was archived so is read-only.'],
    [null],
    ['<html>'],
  ])('GitHub: %j', (body, ...reasons) => {
    expect(githubReasons(githubRefusalSchema.parse(body))).toEqual(reasons);
  });

  it.each<[unknown, ...string[]]>([
    [{ message: ['Another open merge request exists: !5'] }, 'Another open merge request exists: !5'],
    [
      { message: { source_branch: ['is invalid'], base: ['is locked'] } },
      'source_branch: is invalid',
      'is locked',
    ],
    [{ message: '403 Forbidden' }, '403 Forbidden'],
    [{ error: 'insufficient_scope', error_description: 'It requires more.' }, 'It requires more.'],
    [{ error: 'title is missing' }, 'title is missing'],
    [{ message: 5 }],
    [null],
  ])('GitLab: %j', (body, ...reasons) => {
    expect(gitlabReasons(gitlabRefusalSchema.parse(body))).toEqual(reasons);
  });

  it.each<[unknown, ...string[]]>([
    [{ error: { message: 'There are no changes to be pulled' } }, 'There are no changes to be pulled'],
    [{ error: BAD_REQUEST }, 'Bad request', 'twice', 'source: branch not found', 'title: blank'],
    [{ error: { fields: 5 } }],
    [null],
  ])('Bitbucket: %j', (body, ...reasons) => {
    expect(bitbucketReasons(bitbucketRefusalSchema.parse(body))).toEqual(reasons);
  });

  it.each<[unknown, ...string[]]>([
    [{ errors: [{ context: null, message: 'They are up-to-date' }] }, 'They are up-to-date'],
    [{ errors: [BLANK, { context: 'x' }] }, 'title: may not be blank'],
    [null],
  ])('Data Center: %j', (body, ...reasons) => {
    expect(dataCenterReasons(dataCenterRefusalSchema.parse(body))).toEqual(reasons);
  });
});

const TOKEN = 'mona@example.com:s3cret/token';

describe('providerReason', () => {
  it.each<[string[], string | null]>([
    [[], null],
    [['', ' \n '], null],
    [['No commits between main and topic'], 'No commits between main and topic'],
    [['Validation Failed', 'head: invalid', 'Validation Failed'], 'Validation Failed; head: invalid'],
    [['two\r\nlines\u0000 and\u202e more'], 'two lines and more'],
    [[`the token ${TOKEN} is bad`], 'the token *** is bad'],
    [['the token s3cret/token is bad'], 'the token *** is bad'],
    [[`Basic ${Buffer.from(TOKEN).toString('base64')}`], 'Basic ***'],
    [['?private_token=s3cret%2Ftoken'], '?private_token=***'],
  ])('says of %j: %j', (texts, expected) => {
    expect(providerReason(texts, TOKEN)).toBe(expected);
  });

  it('is no longer than 300 characters, and cuts none in half', () => {
    const reason = providerReason(['🚢'.repeat(400)], TOKEN) ?? '';
    expect(reason).toBe(`${'🚢'.repeat(299)}…`);
  });

  it('has no piece of a token where a long text is cut', () => {
    expect(providerReason([`${TOKEN} `.repeat(10_000)], TOKEN)).toBe(`${'*** '.repeat(75).slice(0, 299)}…`);
  });
});

describe('wire forms', () => {
  it.each([
    ['Fix it', true, 'Draft: Fix it'],
    ['Fix it', false, 'Fix it'],
    ['Draft: fix it', true, 'Draft: fix it'],
    ['[draft] fix it', true, '[draft] fix it'],
    ['Drafting tools', true, 'Draft: Drafting tools'],
  ])('GitLab: title %j, draft %s: %j', (title, draft, expected) => {
    const request = { repository: 'a/b', sourceBranch: 's', targetBranch: null, title, body: '', draft };
    expect(newMergeRequest(request, 'main')['title']).toBe(expected);
  });

  it('Bitbucket: names with quotes and backslashes stay one value', () => {
    expect(openBetween('ws/slug', 'a"b\\c', 'main')).toBe(
      'state = "OPEN" AND source.repository.full_name = "ws/slug" AND source.branch.name = "a\\"b\\\\c" AND destination.branch.name = "main"',
    );
  });

  it.each([
    [{ id: 'refs/heads/release/1', displayId: 'release/1' }, 'release/1'],
    [{ id: 'refs/heads/release/1' }, 'release/1'],
    [{}, null],
  ])('Data Center: branch %j is %s', (body, name) => {
    expect(toBranchName(dataCenterBranchSchema.parse(body))).toBe(name);
  });

  it.each([
    [7, 'https://example.com/7', true],
    [7, 'javascript:alert(1)', false],
    [7.5, 'https://example.com/7', false],
    [null, 'https://example.com/7', false],
    [7, null, false],
  ])('a change request of %s and %s is usable: %s', (number, url, usable) => {
    expect(toOpenedChangeRequest(number, url) !== null).toBe(usable);
  });
});

describe('logTail', () => {
  it.each([
    ['nothing', '', ''],
    ['the lines of Actions', '2026-11-21T10:00:00.1234567Z a\r\n2026-11-21T10:00:01.0Z b\r\n', 'a\nb'],
    ['the lines of GitLab', '2026-11-21T10:00:00.123456Z 00O a\n2026-11-21T10:00:00.123456Z 01E b', 'a\nb'],
    ['folded sections', 'section_start:1560896352:test\r\u001b[0K\u001b[31;1mno\u001b[0;m', 'no'],
    ['progress bars', '10 %\r20 %\rdone', '10 %\n20 %\ndone'],
    ['one long line', 'x'.repeat(9_000), 'x'.repeat(4_000)],
    ['half a character', `${'🚢'.repeat(3_000)}x`, `\ufffd${'🚢'.repeat(1_999)}x`],
    ['more lines than fit', `${'a'.repeat(3_000)}\n${'b'.repeat(3_000)}`, 'b'.repeat(3_000)],
  ])('reads %s', (_name, log, expected) => {
    expect(logTail(log)).toBe(expected);
  });
});

describe('readInBatches', () => {
  const refs = Array.from({ length: 5 }, (_, index) => ({ repository: 'octo/app', number: index }));

  it('asks for fewer, and at last for less of each, while there is too much', async () => {
    const asked: string[] = [];
    const found = await readInBatches(refs, { batch: 4, pageSize: 30 }, (some, pageSize) => {
      asked.push(`${some.map(({ number }) => number).join()} ${pageSize}`);
      const isTooLarge = some.length * pageSize > 60;
      return isTooLarge
        ? Promise.reject(new GitProviderError('query_too_large'))
        : Promise.resolve(some.map(({ number }) => number));
    });
    expect(found).toEqual([0, 1, 2, 3, 4]);
    expect(asked).toEqual(['0,1,2,3 30', '0,1 30', '2,3 30', '4 30']);
  });

  it('gives up on one that is too large at its smallest, and on any other failure', async () => {
    const asked: number[] = [];
    const failing = readInBatches(refs.slice(0, 1), { batch: 4, pageSize: 5 }, (_, pageSize) => {
      asked.push(pageSize);
      return Promise.reject(new GitProviderError('query_too_large'));
    });
    await expect(failing).rejects.toThrow('query_too_large');
    expect(asked).toEqual([5, 2, 1]);
    const other = readInBatches(refs, { batch: 4, pageSize: 5 }, () =>
      Promise.reject(new GitProviderError('timeout')),
    );
    await expect(other).rejects.toThrow('timeout');
  });
});

describe('boundFollowed', () => {
  it('puts comments in order, by number within a second, and leaves out those that say nothing', () => {
    const comment = (id: string, createdAt: number, body = 'x'): FollowedComment => ({
      id,
      threadId: null,
      author: 'ada',
      own: false,
      isBot: false,
      mayWrite: null,
      body,
      path: null,
      line: null,
      url: null,
      createdAt,
      resolved: null,
    });
    const followed: FollowedChangeRequest = {
      state: 'open',
      url: 'https://code.example/1',
      headSha: 'c0ffee',
      conflicts: 'no',
      approved: false,
      checks: [],
      comments: [comment('r10', 2), comment('r9', 2), comment('r11', 1), comment('r12', 3, ' \n')],
      truncated: false,
    };
    expect(boundFollowed(followed).comments.map(({ id }) => id)).toEqual(['r11', 'r9', 'r10']);
  });
});
