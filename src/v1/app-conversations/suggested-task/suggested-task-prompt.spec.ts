import { describe, expect, it } from '@jest/globals';
import * as bitbucketDataCenter from '../../../../packages/git-providers/src/bitbucket-data-center/bitbucket-data-center.mapper.js';
import * as bitbucket from '../../../../packages/git-providers/src/bitbucket/bitbucket.mapper.js';
import type { ApiGuide } from '@slipway/git-providers/git-provider.js';
import * as github from '../../../../packages/git-providers/src/github/github.mapper.js';
import * as gitlab from '../../../../packages/git-providers/src/gitlab/gitlab.mapper.js';
import { TASK_TYPES, type TaskType } from '../../../suggested-tasks/collect-candidates.js';
import type { SuggestedTaskDto } from '../../../suggested-tasks/suggested-tasks.dto.js';
import { suggestedTaskPrompt } from './suggested-task-prompt.js';

/** With how a change is called there, where it is, and where checks, comments and issues are. */
interface Server {
  apiUrl: string;
  tokenVariable: string;
  toApiGuide(apiUrl: string, repository: string, number: number): ApiGuide;
  task: Pick<SuggestedTaskDto, 'git_provider' | 'repo'>;
  change: string;
  url: string;
  checks: string;
  comments: string;
  issue: string;
}

const SERVERS: Record<string, Server> = {
  github: {
    toApiGuide: github.toApiGuide,
    apiUrl: 'https://api.github.com',
    tokenVariable: 'GITHUB_TOKEN',
    task: { git_provider: 'github', repo: 'octo/app' },
    change: 'pull request #7 of octo/app',
    url: 'https://api.github.com/repos/octo/app/pulls/7',
    checks: '/commits/{sha}/check-runs',
    comments: '/pulls/7/comments',
    issue: 'https://api.github.com/repos/octo/app/issues/7',
  },
  gitlab: {
    toApiGuide: gitlab.toApiGuide,
    apiUrl: 'https://gitlab.example.com/api/v4',
    tokenVariable: 'GITLAB_TOKEN',
    task: { git_provider: 'gitlab', repo: 'group/sub/app' },
    change: 'merge request !7 of group/sub/app',
    url: 'https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fapp/merge_requests/7',
    checks: '/merge_requests/7/pipelines',
    comments: '/merge_requests/7/discussions',
    issue: 'https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fapp/issues/7',
  },
  bitbucket: {
    toApiGuide: bitbucket.toApiGuide,
    apiUrl: 'https://api.bitbucket.org/2.0',
    tokenVariable: 'BITBUCKET_TOKEN',
    task: { git_provider: 'bitbucket', repo: 'acme/app' },
    change: 'pull request #7 of acme/app',
    url: 'https://api.bitbucket.org/2.0/repositories/acme/app/pullrequests/7',
    checks: '/pullrequests/7/statuses',
    comments: '/pullrequests/7/comments',
    issue: 'https://api.bitbucket.org/2.0/repositories/acme/app/issues/7',
  },
  'Bitbucket Data Center': {
    toApiGuide: bitbucketDataCenter.toApiGuide,
    apiUrl: 'https://git.example.com/rest/api/1.0',
    tokenVariable: 'BITBUCKET_TOKEN',
    task: { git_provider: 'bitbucket', repo: 'PROJ/app' },
    change: 'pull request #7 of PROJ/app',
    url: 'https://git.example.com/rest/api/1.0/projects/PROJ/repos/app/pull-requests/7',
    checks: 'https://git.example.com/rest/build-status/1.0/commits/{sha}',
    comments: '/pull-requests/7/activities',
    issue: '/pull-requests/7',
  },
};

function promptOf(name: string, type: TaskType, tokenVariable?: null): string {
  const server = SERVERS[name];
  if (server === undefined) {
    throw new Error(`no server ${name}`);
  }
  const number = type === 'CREATE_MICROAGENT' ? 0 : 7;
  return suggestedTaskPrompt(
    { ...server.task, task_type: type, issue_number: number, title: 'Retry "slow"\npayments' },
    {
      guide: server.toApiGuide(server.apiUrl, server.task.repo, number),
      tokenVariable: tokenVariable === null ? null : server.tokenVariable,
    },
  );
}

describe.each(Object.keys(SERVERS))('suggestedTaskPrompt at %s', (name) => {
  const known = SERVERS[name];
  const variable = known?.tokenVariable ?? '';

  it.each([
    ['MERGE_CONFLICTS', ['conflict', known?.change, known?.url, 'same branch']],
    ['FAILING_CHECKS', ['fail', known?.change, known?.url, known?.checks, 'same branch']],
    ['UNRESOLVED_COMMENTS', ['review comments', known?.change, known?.url, known?.comments, 'same branch']],
    ['OPEN_PR', ['is open', known?.change, known?.url, known?.comments, 'same branch']],
    ['OPEN_ISSUE', ['issue #7', known?.issue, 'new branch', 'create_pull_request']],
  ] as const)('%s says what to do, where to look, and how to ask there', (type, expected) => {
    const prompt = promptOf(name, type);

    for (const part of expected) {
      expect(prompt).toContain(part);
    }
    expect(prompt).toContain(`$${variable}`);
    expect(prompt).toContain('titled "Retry \\"slow\\" payments"');
    expect(prompt).not.toMatch(/undefined|\bgh \b|\bglab\b/);
  });

  it('CREATE_MICROAGENT asks for AGENTS.md and has no number to name', () => {
    const prompt = promptOf(name, 'CREATE_MICROAGENT');

    expect(prompt).toContain('AGENTS.md');
    expect(prompt).toContain('create_pull_request');
    expect(prompt).toContain(SERVERS[name]?.task.repo);
    expect(prompt).not.toMatch(/[#!]0|undefined/);
  });

  it('calls a change request what the server calls it', () => {
    const other = name === 'gitlab' ? 'pull request' : 'merge request';

    for (const type of TASK_TYPES) {
      expect(promptOf(name, type)).not.toContain(other);
    }
  });

  it('promises no token where tools get none', () => {
    for (const type of TASK_TYPES) {
      expect(promptOf(name, type, null)).not.toContain('$');
    }
    expect(promptOf(name, 'FAILING_CHECKS', null)).toContain('There is no token for');
  });
});
