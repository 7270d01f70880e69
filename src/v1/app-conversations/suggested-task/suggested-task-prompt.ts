import type { ApiGuide } from '@slipway/git-providers/git-provider.js';
import type { TaskType } from '../../../suggested-tasks/collect-candidates.js';
import type { SuggestedTaskDto } from '../../../suggested-tasks/suggested-tasks.dto.js';

export interface TaskGitServer {
  /** Tells the agent how to find what it needs without a command-line client of the server. */
  guide: ApiGuide;
  /** The variable with the token for the agent's tools; null without a token. */
  tokenVariable: string | null;
}

/** Names repository, number and title; the agent looks up what changes (branches, logs, comments) itself. */
export function suggestedTaskPrompt(task: SuggestedTaskDto, server: TaskGitServer): string {
  const paragraphs = [
    ...PARAGRAPHS[task.task_type](task, server.guide),
    ...(task.task_type === 'CREATE_MICROAGENT' ? [] : [accessParagraph(server)]),
  ];
  return paragraphs.join('\n\n');
}

const PARAGRAPHS: Record<TaskType, (task: SuggestedTaskDto, guide: ApiGuide) => string[]> = {
  MERGE_CONFLICTS: (task, guide) => [
    `${changeTitle(task, guide)} cannot be merged: its branch conflicts with the branch it shall go into. Resolve the conflicts.`,
    findBranch(guide),
    'Merge the target branch into it and go through every conflict. Keep the intent of both sides; where they contradict ' +
      'each other, look at the history of both before you decide, and say in the end what you decided.',
    `Run the tests of the parts that were touched. ${pushBack(guide)}`,
  ],
  FAILING_CHECKS: (task, guide) => [
    `Checks of ${lowerFirst(changeTitle(task, guide))} fail. Make them pass.`,
    findBranch(guide),
    `Find out which checks fail and why: ${guide.checks}.`,
    'Reproduce the failure here if you can, and repair its cause. Do not switch checks or tests off; if one of them is ' +
      'wrong itself, say why before you change it. A failure that has nothing to do with the change (an outage, a missing ' +
      'secret) is something to report, not to work around.',
    `Run the checks again as far as that is possible here. ${pushBack(guide)}`,
  ],
  UNRESOLVED_COMMENTS: (task, guide) => [
    `${changeTitle(task, guide)} has review comments that nobody has resolved yet. Work through them.`,
    findBranch(guide),
    `Read the comments: ${guide.comments}. What is resolved already, or answered since, is done.`,
    'Make the change that each open comment asks for. Where you disagree, or a comment leaves more than one way, do not ' +
      'guess: list these with your view of them in the end.',
    `Run the tests of the parts that were touched. ${pushBack(guide)}`,
  ],
  OPEN_PR: (task, guide) => [
    `${changeTitle(task, guide)} is open. Bring it further.`,
    findBranch(guide),
    `Read its description and its discussion (${guide.changeUrl}; ${guide.comments}) and compare what it says with what ` +
      'the branch does: what is missing, untested or broken?',
    `Complete it in the spirit of what is there, and run the tests. ${pushBack(guide)} Sum up what you found and changed.`,
  ],
  OPEN_ISSUE: (task, guide) => [
    `Resolve issue #${task.issue_number} of ${task.repo}, ${quoted(task.title)}.`,
    `Read the issue with its comments first: ${guide.issueUrl}.`,
    'Find the place in the code, reproduce the problem where it is one, and write a test that fails because of it. Then ' +
      'change what is needed and no more, and run the tests.',
    `Commit to a new branch and open a ${guide.noun} that names issue #${task.issue_number}, with the tool ` +
      '`create_pull_request` where you have it.',
  ],
  CREATE_MICROAGENT: (task, guide) => [
    `${task.repo} has no instructions for agents yet. Write them, as AGENTS.md at the root of the repository.`,
    'Look through the repository first: what it is for, how it is laid out, how it is built, tested, linted and run, which ' +
      'conventions its code and its commits follow. Try the commands before you write them down.',
    'Write what somebody who is new here needs and could not see at a glance, in at most two pages. Leave out what you ' +
      'could not confirm.',
    `Commit to a new branch and open a ${guide.noun}, with the tool \`create_pull_request\` where you have it.`,
  ],
};

function changeTitle(task: SuggestedTaskDto, { noun, change }: ApiGuide): string {
  return `The ${noun} ${change} of ${task.repo}, ${quoted(task.title)},`;
}

function findBranch({ noun, changeUrl }: ApiGuide): string {
  return (
    `Look up the source and the target branch of the ${noun} (${changeUrl}), fetch both and check out the source ` +
    'branch. Where it lies in a fork, your instructions say what is checked out already.'
  );
}

function pushBack({ noun }: ApiGuide): string {
  return (
    `Commit and push to the same branch, without rewriting its history, so that the ${noun} has the change; where ` +
    'pushing is not yours to do, call `create_pull_request` with that branch as its source: it pushes, and finds the ' +
    'one that is open.'
  );
}

function accessParagraph({ tokenVariable, guide }: TaskGitServer): string {
  return tokenVariable === null
    ? `There is no token for ${guide.apiUrl} in your environment: ask without one where the repository is public, and find out ` +
        'the rest from the repository itself.'
    : `The token for ${guide.apiUrl} is in the variable ${tokenVariable}; requests carry it as ` +
        `${authorization(guide, tokenVariable)}. Never print it.`;
}

function authorization(guide: ApiGuide, tokenVariable: string): string {
  const bearer = `the header \`Authorization: Bearer $${tokenVariable}\``;
  return guide.authorization === 'bearer'
    ? bearer
    : `HTTP Basic (\`curl -u "$${tokenVariable}"\`) when the variable holds an email address and a token, else ${bearer}`;
}

/** Untrusted, so the title is put on one line, and set apart from the other words. */
function quoted(title: string): string {
  return `titled ${JSON.stringify(title.replace(/\s+/g, ' ').trim())}`;
}

function lowerFirst(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
