import { describe, expect, it } from '@jest/globals';
import { GitProviderError, type GitServerKind, type ToldChangeRequest } from './git-provider.js';
import { toldChangeRequest, WEBHOOK_SOURCES, webhooksOf, type WorkItem, workPage } from './git-servers.js';

const COMMIT = 'https://api.bitbucket.org/2.0/repositories/octo/app/commit/abcdef0';
const DATA_CENTER = { slug: 'app', project: { key: 'OCTO' } };
/** How each host names the repository of an event. */
const REPOSITORIES = {
  github: { repository: { full_name: 'octo/app' } },
  gitlab: { project: { path_with_namespace: 'octo/app' } },
  bitbucket: { repository: { full_name: 'octo/app' } },
  bitbucket_data_center: { repository: DATA_CENTER },
};

function told(source: string, payload: unknown): ToldChangeRequest | null {
  const webhooks = webhooksOf(source);
  return webhooks && toldChangeRequest(webhooks, payload);
}

describe('an event', () => {
  it.each<[keyof typeof REPOSITORIES, string, object, number[], string[]]>([
    ['github', 'a pull request', { pull_request: { number: 7, head: { sha: 'a1' } } }, [7], ['a1']],
    ['github', 'a comment', { issue: { number: 7, pull_request: {} } }, [7], []],
    [
      'github',
      'a check',
      { check_run: { head_sha: 'a1', pull_requests: [{ number: 7 }, { number: 8 }] } },
      [7, 8],
      ['a1'],
    ],
    // https://github.com/octo-sts/app/pull/1590, https://github.com/Mergifyio/mergify/pull/831
    [
      'github',
      'a check in several repositories',
      {
        repository: { full_name: 'octo/app', id: 1 },
        check_run: { pull_requests: [1, 2].map((id) => ({ number: 6 + id, base: { repo: { id } } })) },
      },
      [7],
      [],
    ],
    ['github', 'a check of a fork', { check_suite: { head_sha: 'a1', pull_requests: [] } }, [], ['a1']],
    ['github', 'a job of a workflow', { workflow_job: { head_sha: 'a1' } }, [], ['a1']],
    ['github', 'a resolved thread', { thread: { node_id: 'x' }, pull_request: { number: 7 } }, [7], []],
    ['github', 'a ping', { zen: 'Keep it logically awesome.', hook_id: 1 }, [], []],
    ['github', 'a status', { sha: 'a1' }, [], ['a1']],
    ['github', 'a push', { before: 'a0', after: 'a1' }, [], ['a0']],
    ['gitlab', 'a merge request', { object_kind: 'merge_request', object_attributes: { iid: 7 } }, [7], []],
    [
      'gitlab',
      'a note',
      { merge_request: { iid: 7, last_commit: { id: 'a1' } }, object_attributes: { id: 90 } },
      [7],
      ['a1'],
    ],
    [
      'gitlab',
      'a pipeline',
      { object_kind: 'pipeline', object_attributes: { iid: 7, sha: 'a1' } },
      [],
      ['a1'],
    ],
    [
      'gitlab',
      'a pipeline in a fork',
      {
        project: { path_with_namespace: 'octo/app', id: 2 },
        merge_request: { iid: 7, source_project_id: 2, target_project_id: 1 },
      },
      [],
      [],
    ],
    ['gitlab', 'an issue', { object_kind: 'issue', object_attributes: { iid: 7 } }, [], []],
    ['gitlab', 'a milestone', { object_kind: 'milestone', object_attributes: { iid: 7 } }, [], []],
    ['gitlab', 'a job', { sha: 'a1', before_sha: 'a0', commit: { sha: 'a1' } }, [], ['a1', 'a1']],
    [
      'gitlab',
      'a pipeline of a merged result',
      { object_attributes: { id: 90, sha: 'f0' }, merge_request: { iid: 7 } },
      [7],
      ['f0'],
    ],
    ['bitbucket', 'a pull request', { pullrequest: { id: 7 } }, [7], []],
    ['bitbucket', 'a build', { commit_status: { links: { commit: { href: COMMIT } } } }, [], ['abcdef0']],
    [
      'bitbucket_data_center',
      'a pull request',
      { repository: undefined, pullRequest: { id: 7, toRef: { repository: DATA_CENTER } } },
      [7],
      [],
    ],
    ['bitbucket_data_center', 'a push', {}, [], []],
  ])('of %s of %s says which one', (source, _what, payload, numbers, shas) => {
    const repository = source === 'bitbucket_data_center' ? 'OCTO/app' : 'octo/app';
    expect(told(source, { ...REPOSITORIES[source], ...payload })).toEqual({ repository, numbers, shas });
  });

  it.each([[null], ['text'], [{}], [{ repository: 'octo/app' }], [{ repository: { full_name: 7 } }]])(
    'without a repository says nothing: %j',
    (payload) => {
      expect(WEBHOOK_SOURCES.map((source) => told(source, payload))).toEqual(WEBHOOK_SOURCES.map(() => null));
    },
  );

  it('of no use says no number', () => {
    const numbers = ['7', -1, 1.5, 2 ** 40].map((number) => ({ number }));
    expect(
      told('github', { ...REPOSITORIES.github, check_run: { pull_requests: numbers } })?.numbers,
    ).toEqual([]);
  });
});

const SYNCHRONIZED = { action: 'synchronize', pull_request: {} };
const DEPLOYED = {
  action: 'created',
  deployment_status: {},
  deployment: {},
  check_run: {},
  workflow_run: {},
};

describe('the key of an event', () => {
  it.each<[string, string, object, string?]>([
    [
      'ping',
      'github',
      { zen: 'Keep it logically awesome.', hook_id: 1, hook: { type: 'Repository' } },
      'ping',
    ],
    ['issues.labeled', 'github', { action: 'labeled', issue: {}, label: { name: 'agent' } }, 'issues'],
    ['push', 'github', { ref: 'refs/heads/main', before: 'a0', after: 'a1' }, 'push'],
    ['pull_request.synchronize', 'github', { ...SYNCHRONIZED, before: 'a0', after: 'a1' }, 'pull_request'],
    ['deployment_status.created', 'github', DEPLOYED, 'deployment_status'],
    ['workflow_job.queued', 'github', { action: 'queued', workflow_job: {}, deployment: {} }, 'workflow_job'],
    ['deployment_review.approved', 'github', { action: 'approved', workflow_run: {} }, 'deployment_review'],
    ['workflow_dispatch', 'github', { inputs: null, ref: 'main', workflow: 'ci.yml' }, 'workflow_dispatch'],
    ['watch.started', 'github', { action: 'started' }, 'watch'],
    ['', 'github', { action: 'labeled', issue: {} }, 'pull_request'],
    ['', 'github', { action: 'created', issue: {}, comment: {} }, 'issues'],
    ['', 'github', { action: 'started' }, 'push'],
    ['', 'github', SYNCHRONIZED, 'sponsorship'],
    ['', 'github', DEPLOYED, 'check_run'],
    ['merge_request.open', 'gitlab', { object_kind: 'merge_request', object_attributes: { action: 'open' } }],
    // https://gitlab.com/gitlab-org/gitlab/-/issues/517947
    ...['Issue', 'Incident', 'Task', 'Epic'].map((type): [string, string, object] => [
      /I/.test(type) ? 'issue.open' : 'work_item.open',
      'gitlab',
      { object_kind: 'work_item', object_attributes: { type, action: 'open' } },
    ]),
    ['release.create', 'gitlab', { object_kind: 'release', action: 'create', tag: 'v1.1' }],
    ['milestone.close', 'gitlab', { object_kind: 'milestone', object_attributes: {}, action: 'close' }],
    ['user_add_to_group', 'gitlab', { event_name: 'user_add_to_group', group_name: 'octo' }],
    ['push', 'gitlab', { object_kind: 'push', event_name: 'push', ref: 'refs/heads/main' }],
    ['pullrequest.created', 'bitbucket', { pullrequest: { state: 'OPEN' } }, 'pullrequest:created'],
    ['pullrequest.fulfilled', 'bitbucket', { pullrequest: { state: 'MERGED' } }, 'pullrequest:fulfilled'],
    ['pullrequest.unapproved', 'bitbucket', { pullrequest: {}, approval: {} }, 'pullrequest:unapproved'],
    ['repo.push', 'bitbucket', { push: { changes: [] } }, 'repo:push'],
    ['repo.updated', 'bitbucket', { changes: {} }, 'repo:updated'],
    ['', 'bitbucket', { pullrequest: { state: 'OPEN' } }, 'pullrequest:fulfilled'],
    ['', 'bitbucket', { pullrequest: {}, comment: {} }, 'pullrequest:created'],
    ['', 'bitbucket', {}, 'pullrequest:created'],
    ['pr.opened', 'bitbucket_data_center', { eventKey: 'pr:opened' }, 'pr:merged'],
    ['', 'bitbucket_data_center', {}, 'pr:opened'],
  ])('is %s, at %s', (key, source, payload, header = '') => {
    const sent = { body: Buffer.alloc(0), header: (name: string) => (/event/.test(name) ? header : '') };
    expect(webhooksOf(source)?.keyOf(sent, payload)).toBe(key);
  });
});

describe('the page of an item of work', () => {
  const at = (kind: GitServerKind, clone: string, item: WorkItem, number: number): string | null =>
    workPage({ kind, cloneUrl: () => clone }, { host: null, repository: 'octo/app', item, number });

  it.each<[GitServerKind, string, WorkItem, number, string]>([
    ['github', 'https://github.com/octo/app.git', 'change', 7, 'https://github.com/octo/app/pull/7'],
    ['github', 'https://github.com/octo/app.git', 'issue', 8, 'https://github.com/octo/app/issues/8'],
    ['github', 'https://github.com/octo/app.git', 'change', 0, 'https://github.com/octo/app'],
    [
      'gitlab',
      'https://git.example.com/x/a/b.git',
      'change',
      7,
      'https://git.example.com/x/a/b/-/merge_requests/7',
    ],
    ['gitlab', 'https://gitlab.com/a/b.git', 'issue', 8, 'https://gitlab.com/a/b/-/issues/8'],
    ['bitbucket', 'https://bitbucket.org/a/b.git', 'change', 7, 'https://bitbucket.org/a/b/pull-requests/7'],
    [
      'bitbucket_dc',
      'https://git.example.com/x/scm/OCTO/app.git',
      'change',
      7,
      'https://git.example.com/x/projects/OCTO/repos/app/pull-requests/7',
    ],
  ])('of %s (%s, %s %i) is %s', (kind, clone, item, number, page) => {
    expect(at(kind, clone, item, number)).toBe(page);
  });

  it('is none for a name that the server cannot have', () => {
    const cloneUrl = (): never => {
      throw new GitProviderError('unsupported', { reason: 'no such name' });
    };

    expect(
      workPage({ kind: 'github', cloneUrl }, { host: null, repository: '', item: 'issue', number: 1 }),
    ).toBeNull();
  });
});
