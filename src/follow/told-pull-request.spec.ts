import { describe, expect, it } from '@jest/globals';
import { toldPullRequest } from './told-pull-request.js';

const GITHUB = { repository: { full_name: 'octo/app' } };
const GITLAB = { project: { path_with_namespace: 'octo/deep/app' } };
const CLOUD = { repository: { full_name: 'octo/app' } };
const DATA_CENTER = { slug: 'app', project: { key: 'OCTO' } };

describe('an event', () => {
  it.each<[string, unknown, string, number[], string[]]>([
    [
      'a pull request',
      { ...GITHUB, pull_request: { number: 7, head: { sha: 'a1' } } },
      'octo/app',
      [7],
      ['a1'],
    ],
    ['a comment', { ...GITHUB, issue: { number: 7, pull_request: {} } }, 'octo/app', [7], []],
    [
      'a check',
      { ...GITHUB, check_run: { head_sha: 'a1', pull_requests: [{ number: 7 }, { number: 8 }] } },
      'octo/app',
      [7, 8],
      ['a1'],
    ],
    [
      'a check of a fork',
      { ...GITHUB, check_suite: { head_sha: 'a1', pull_requests: [] } },
      'octo/app',
      [],
      ['a1'],
    ],
    ['a job of a workflow', { ...GITHUB, workflow_job: { head_sha: 'a1' } }, 'octo/app', [], ['a1']],
    [
      'a thread that is resolved',
      { ...GITHUB, action: 'resolved', thread: { node_id: 'x' }, pull_request: { number: 7 } },
      'octo/app',
      [7],
      [],
    ],
    ['a ping', { ...GITHUB, zen: 'Keep it logically awesome.', hook_id: 1 }, 'octo/app', [], []],
    ['a status', { ...GITHUB, sha: 'a1' }, 'octo/app', [], ['a1']],
    ['a push', { ...GITHUB, before: 'a0', after: 'a1' }, 'octo/app', [], ['a0']],
    [
      'a merge request',
      { ...GITLAB, object_kind: 'merge_request', object_attributes: { iid: 7 } },
      'octo/deep/app',
      [7],
      [],
    ],
    [
      'a note',
      { ...GITLAB, merge_request: { iid: 7, last_commit: { id: 'a1' } }, object_attributes: { id: 90 } },
      'octo/deep/app',
      [7],
      ['a1'],
    ],
    ['a pipeline', { ...GITLAB, object_attributes: { id: 90, sha: 'a1' } }, 'octo/deep/app', [], ['a1']],
    [
      'a job of GitLab',
      { ...GITLAB, object_kind: 'build', sha: 'a1', before_sha: 'a0', commit: { sha: 'a1' } },
      'octo/deep/app',
      [],
      ['a1', 'a1'],
    ],
    [
      'a pipeline of a merged result',
      { ...GITLAB, object_attributes: { id: 90, sha: 'f0' }, merge_request: { iid: 7 } },
      'octo/deep/app',
      [7],
      ['f0'],
    ],
    ['a pull request of Bitbucket', { ...CLOUD, pullrequest: { id: 7 } }, 'octo/app', [7], []],
    [
      'a build of Bitbucket',
      {
        ...CLOUD,
        commit_status: {
          links: { commit: { href: 'https://api.bitbucket.org/2.0/repositories/octo/app/commit/abcdef0' } },
        },
      },
      'octo/app',
      [],
      ['abcdef0'],
    ],
    [
      'a pull request of Data Center',
      { pullRequest: { id: 7, toRef: { repository: DATA_CENTER } } },
      'OCTO/app',
      [7],
      [],
    ],
    ['a push to Data Center', { repository: DATA_CENTER }, 'OCTO/app', [], []],
  ])('of %s says which one', (_what, payload, repository, numbers, shas) => {
    expect(toldPullRequest(payload)).toEqual({ repository, numbers, shas });
  });

  it.each([[null], ['text'], [{}], [{ repository: 'octo/app' }], [{ repository: { full_name: 7 } }]])(
    'without a repository says nothing: %j',
    (payload) => {
      expect(toldPullRequest(payload)).toBeNull();
    },
  );

  it('of no use says no number', () => {
    const numbers = ['7', -1, 1.5, 2 ** 40].map((number) => ({ number }));
    expect(toldPullRequest({ ...GITHUB, check_run: { pull_requests: numbers } })?.numbers).toEqual([]);
  });
});
