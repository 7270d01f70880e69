import { describe, expect, it } from '@jest/globals';
import type { ToldChangeRequest } from './git-provider.js';
import { toldChangeRequest, WEBHOOK_SOURCES, webhooksOf } from './git-servers.js';

const GITHUB = { repository: { full_name: 'octo/app' } };
const GITLAB = { project: { path_with_namespace: 'octo/deep/app' } };
const CLOUD = { repository: { full_name: 'octo/app' } };
const DATA_CENTER = { slug: 'app', project: { key: 'OCTO' } };

function told(source: string, payload: unknown): ToldChangeRequest | null {
  const webhooks = webhooksOf(source);
  return webhooks && toldChangeRequest(webhooks, payload);
}

describe('an event', () => {
  it.each<[string, string, unknown, string, number[], string[]]>([
    [
      'github',
      'a pull request',
      { ...GITHUB, pull_request: { number: 7, head: { sha: 'a1' } } },
      'octo/app',
      [7],
      ['a1'],
    ],
    ['github', 'a comment', { ...GITHUB, issue: { number: 7, pull_request: {} } }, 'octo/app', [7], []],
    [
      'github',
      'a check',
      { ...GITHUB, check_run: { head_sha: 'a1', pull_requests: [{ number: 7 }, { number: 8 }] } },
      'octo/app',
      [7, 8],
      ['a1'],
    ],
    [
      'github',
      'a check of a fork',
      { ...GITHUB, check_suite: { head_sha: 'a1', pull_requests: [] } },
      'octo/app',
      [],
      ['a1'],
    ],
    [
      'github',
      'a job of a workflow',
      { ...GITHUB, workflow_job: { head_sha: 'a1' } },
      'octo/app',
      [],
      ['a1'],
    ],
    [
      'github',
      'a thread that is resolved',
      { ...GITHUB, action: 'resolved', thread: { node_id: 'x' }, pull_request: { number: 7 } },
      'octo/app',
      [7],
      [],
    ],
    ['github', 'a ping', { ...GITHUB, zen: 'Keep it logically awesome.', hook_id: 1 }, 'octo/app', [], []],
    ['github', 'a status', { ...GITHUB, sha: 'a1' }, 'octo/app', [], ['a1']],
    ['github', 'a push', { ...GITHUB, before: 'a0', after: 'a1' }, 'octo/app', [], ['a0']],
    [
      'gitlab',
      'a merge request',
      { ...GITLAB, object_kind: 'merge_request', object_attributes: { iid: 7 } },
      'octo/deep/app',
      [7],
      [],
    ],
    [
      'gitlab',
      'a note',
      { ...GITLAB, merge_request: { iid: 7, last_commit: { id: 'a1' } }, object_attributes: { id: 90 } },
      'octo/deep/app',
      [7],
      ['a1'],
    ],
    [
      'gitlab',
      'a pipeline',
      { ...GITLAB, object_attributes: { id: 90, sha: 'a1' } },
      'octo/deep/app',
      [],
      ['a1'],
    ],
    [
      'gitlab',
      'a job of GitLab',
      { ...GITLAB, object_kind: 'build', sha: 'a1', before_sha: 'a0', commit: { sha: 'a1' } },
      'octo/deep/app',
      [],
      ['a1', 'a1'],
    ],
    [
      'gitlab',
      'a pipeline of a merged result',
      { ...GITLAB, object_attributes: { id: 90, sha: 'f0' }, merge_request: { iid: 7 } },
      'octo/deep/app',
      [7],
      ['f0'],
    ],
    ['bitbucket', 'a pull request of Bitbucket', { ...CLOUD, pullrequest: { id: 7 } }, 'octo/app', [7], []],
    [
      'bitbucket',
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
      'bitbucket_data_center',
      'a pull request of Data Center',
      { pullRequest: { id: 7, toRef: { repository: DATA_CENTER } } },
      'OCTO/app',
      [7],
      [],
    ],
    ['bitbucket_data_center', 'a push to Data Center', { repository: DATA_CENTER }, 'OCTO/app', [], []],
  ])('of %s of %s says which one', (source, _what, payload, repository, numbers, shas) => {
    expect(told(source, payload)).toEqual({ repository, numbers, shas });
  });

  it.each([[null], ['text'], [{}], [{ repository: 'octo/app' }], [{ repository: { full_name: 7 } }]])(
    'without a repository says nothing: %j',
    (payload) => {
      expect(WEBHOOK_SOURCES.map((source) => told(source, payload))).toEqual(WEBHOOK_SOURCES.map(() => null));
    },
  );

  it('of no use says no number', () => {
    const numbers = ['7', -1, 1.5, 2 ** 40].map((number) => ({ number }));
    expect(told('github', { ...GITHUB, check_run: { pull_requests: numbers } })?.numbers).toEqual([]);
  });
});
