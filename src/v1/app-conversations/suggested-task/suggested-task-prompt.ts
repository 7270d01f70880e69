import type { GitServerKind, ProviderType } from '../../../git-providers/git-provider.js';
import type { TaskType } from '../../../suggested-tasks/candidate.js';

/** A piece of work as `GET /api/user/suggested-tasks` lists it and a client hands it back. */
export interface SuggestedTask {
  git_provider: ProviderType;
  task_type: TaskType;
  repo: string;
  /** 0 for CREATE_MICROAGENT. */
  issue_number: number;
  title: string;
}

/** The git server of the repository. */
export interface TaskGitServer {
  kind: GitServerKind;
  /** Base address of its REST API, without a trailing slash. */
  apiUrl: string;
  /** The environment variable with the token for the agent's tools; null where they get none. */
  tokenVariable: string | null;
}

/** Where an agent finds what a task needs, and in which words. */
interface GitServerHints {
  /** What the server calls a change request. */
  noun: 'pull request' | 'merge request';
  /** How people write one with its number. */
  change: string;
  /** Address of the change request: its branches, its state. */
  changeUrl: string;
  /** Where the results of the checks are. */
  checks: string;
  /** Where the review comments are. */
  comments: string;
  /** Where an issue is. */
  issueUrl: string;
  /** How a request carries the token. */
  authorization: string;
}

/**
 * The first message of a conversation about a suggested task. It names what is known (repository, number, title) and
 * where to find the rest: the agent looks up branches, logs and comments itself, since they change.
 */
export function suggestedTaskPrompt(task: SuggestedTask, server: TaskGitServer): string {
  const hints = gitServerHints(task, server);
  const paragraphs = [
    ...PARAGRAPHS[task.task_type](task, hints),
    ...(task.task_type === 'CREATE_MICROAGENT' ? [] : [accessParagraph(server, hints)]),
  ];
  return paragraphs.join('\n\n');
}

const PARAGRAPHS: Record<TaskType, (task: SuggestedTask, hints: GitServerHints) => string[]> = {
  MERGE_CONFLICTS: (task, hints) => [
    `${changeTitle(task, hints)} cannot be merged: its branch conflicts with the branch it shall go into. Resolve the conflicts.`,
    findBranch(hints),
    'Merge the target branch into it and go through every conflict. Keep the intent of both sides; where they contradict ' +
      'each other, look at the history of both before you decide, and say in the end what you decided.',
    `Run the tests of the parts that were touched. ${pushBack(hints)}`,
  ],
  FAILING_CHECKS: (task, hints) => [
    `Checks of ${lowerFirst(changeTitle(task, hints))} fail. Make them pass.`,
    findBranch(hints),
    `Find out which checks fail and why: ${hints.checks}.`,
    'Reproduce the failure here if you can, and repair its cause. Do not switch checks or tests off; if one of them is ' +
      'wrong itself, say why before you change it. A failure that has nothing to do with the change (an outage, a missing ' +
      'secret) is something to report, not to work around.',
    `Run the checks again as far as that is possible here. ${pushBack(hints)}`,
  ],
  UNRESOLVED_COMMENTS: (task, hints) => [
    `${changeTitle(task, hints)} has review comments that nobody has resolved yet. Work through them.`,
    findBranch(hints),
    `Read the comments: ${hints.comments}. What is resolved already, or answered since, is done.`,
    'Make the change that each open comment asks for. Where you disagree, or a comment leaves more than one way, do not ' +
      'guess: list these with your view of them in the end.',
    `Run the tests of the parts that were touched. ${pushBack(hints)}`,
  ],
  OPEN_PR: (task, hints) => [
    `${changeTitle(task, hints)} is open. Bring it further.`,
    findBranch(hints),
    `Read its description and its discussion (${hints.changeUrl}; ${hints.comments}) and compare what it says with what ` +
      'the branch does: what is missing, untested or broken?',
    `Complete it in the spirit of what is there, and run the tests. ${pushBack(hints)} Sum up what you found and changed.`,
  ],
  OPEN_ISSUE: (task, hints) => [
    `Resolve issue #${task.issue_number} of ${task.repo}, ${quoted(task.title)}.`,
    `Read the issue with its comments first: ${hints.issueUrl}.`,
    'Find the place in the code, reproduce the problem where it is one, and write a test that fails because of it. Then ' +
      'change what is needed and no more, and run the tests.',
    `Commit to a new branch and open a ${hints.noun} that names issue #${task.issue_number}, with the tool ` +
      '`create_pull_request` where you have it.',
  ],
  CREATE_MICROAGENT: (task, hints) => [
    `${task.repo} has no instructions for agents yet. Write them, as AGENTS.md at the root of the repository.`,
    'Look through the repository first: what it is for, how it is laid out, how it is built, tested, linted and run, which ' +
      'conventions its code and its commits follow. Try the commands before you write them down.',
    'Write what somebody who is new here needs and could not see at a glance, in at most two pages. Leave out what you ' +
      'could not confirm.',
    `Commit to a new branch and open a ${hints.noun}, with the tool \`create_pull_request\` where you have it.`,
  ],
};

function changeTitle(task: SuggestedTask, { noun, change }: GitServerHints): string {
  return `The ${noun} ${change} of ${task.repo}, ${quoted(task.title)},`;
}

function findBranch({ noun, changeUrl }: GitServerHints): string {
  return (
    `Look up the source and the target branch of the ${noun} (${changeUrl}), fetch both and check out the source ` +
    'branch. If it lies in a fork, say so and go on with what you can reach.'
  );
}

function pushBack({ noun }: GitServerHints): string {
  return (
    `Commit and push to the same branch, without rewriting its history, so that the ${noun} has the change; where ` +
    'pushing is not yours to do, call `create_pull_request` with that branch as its source: it pushes, and finds the ' +
    'one that is open.'
  );
}

function accessParagraph(
  { apiUrl, tokenVariable }: TaskGitServer,
  { authorization }: GitServerHints,
): string {
  return tokenVariable === null
    ? `There is no token for ${apiUrl} in your environment: ask without one where the repository is public, and find out ` +
        'the rest from the repository itself.'
    : `The token for ${apiUrl} is in the variable ${tokenVariable}; requests carry it as ${authorization}. Never print it.`;
}

/** Someone else wrote the title: it is put on one line, and set apart from the words around it. */
function quoted(title: string): string {
  return `titled ${JSON.stringify(title.replace(/\s+/g, ' ').trim())}`;
}

function lowerFirst(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

/** Hints for one task on its server. None needs a command-line client of the server. */
function gitServerHints(task: SuggestedTask, { kind, apiUrl, tokenVariable }: TaskGitServer): GitServerHints {
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
