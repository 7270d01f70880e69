import type { SuggestedTask, TaskForge } from './suggested-task.js';

/** How a git host's API tells what a task needs. */
export interface ForgeHints {
  /** What the host calls a change request. */
  noun: 'pull request' | 'merge request';
  /** How people write one with its number. */
  change: string;
  /** Address of the change request: its branches, its state. */
  changeUrl: string;
  /** Where the outcome of the checks is. */
  checks: string;
  /** Where the review comments are. */
  comments: string;
  /** Where an issue is. */
  issueUrl: string;
  /** How a request carries the token. */
  authorization: string;
}

/** Hints for one task at its host. Nothing in them needs a command-line client of the host. */
export function forgeHints(task: SuggestedTask, { kind, apiUrl, tokenVariable }: TaskForge): ForgeHints {
  const number = task.issue_number;
  const bearer = `the header \`Authorization: Bearer $${tokenVariable ?? ''}\``;
  switch (kind) {
    case 'github': {
      const repository = `${apiUrl}/repos/${task.repo}`;
      return {
        noun: 'pull request',
        change: `#${number}`,
        changeUrl: `${repository}/pulls/${number}`,
        checks:
          `${repository}/commits/{sha}/check-runs and ${repository}/commits/{sha}/status with the sha of its last ` +
          `commit; the log of a job is at ${repository}/actions/jobs/{id}/logs`,
        comments:
          `${repository}/pulls/${number}/comments, ${repository}/pulls/${number}/reviews and ` +
          `${repository}/issues/${number}/comments`,
        issueUrl: `${repository}/issues/${number}`,
        authorization: bearer,
      };
    }
    case 'gitlab': {
      const project = `${apiUrl}/projects/${encodeURIComponent(task.repo)}`;
      return {
        noun: 'merge request',
        change: `!${number}`,
        changeUrl: `${project}/merge_requests/${number}`,
        checks:
          `${project}/merge_requests/${number}/pipelines, the jobs at ${project}/pipelines/{id}/jobs and the log of ` +
          `one at ${project}/jobs/{id}/trace`,
        comments: `${project}/merge_requests/${number}/discussions`,
        issueUrl: `${project}/issues/${number}`,
        authorization: bearer,
      };
    }
    case 'bitbucket': {
      const repository = `${apiUrl}/repositories/${task.repo}`;
      return {
        noun: 'pull request',
        change: `#${number}`,
        changeUrl: `${repository}/pullrequests/${number}`,
        checks: `${repository}/pullrequests/${number}/statuses`,
        comments: `${repository}/pullrequests/${number}/comments and ${repository}/pullrequests/${number}/tasks`,
        issueUrl: `${repository}/issues/${number}`,
        authorization:
          `HTTP Basic (\`curl -u "$${tokenVariable ?? ''}"\`) when the variable holds an email address and a ` +
          `token, else ${bearer}`,
      };
    }
    case 'bitbucket_dc': {
      const [project = '', slug = ''] = task.repo.split('/');
      const change = `${apiUrl}/projects/${project}/repos/${slug}/pull-requests/${number}`;
      return {
        noun: 'pull request',
        change: `#${number}`,
        changeUrl: change,
        checks: `${apiUrl.replace('/api/1.0', '')}/build-status/1.0/commits/{sha} with the sha of its last commit`,
        comments: `${change}/activities`,
        issueUrl: change,
        authorization: bearer,
      };
    }
  }
}
