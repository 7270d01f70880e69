import type { ChangeHead } from '@slipway/git-providers/forks.js';

/** Whether forks are made in the name of a user who may not push. */
export const FORK_POLICIES = ['auto', 'never'] as const;
export type ForkPolicy = (typeof FORK_POLICIES)[number];

/** The branch of a pull request that does not lie in the repository that it goes to. */
export interface ForkHead extends ChangeHead {
  number: number;
}

/** Tells where a conversation's commits come from and go to, if that is not just its repository. */
export interface WorkPlace {
  /** Head of the pull request that is worked on; null means that the work begins in the repository. */
  head: ForkHead | null;
  /** `fork` is one of the user's own, which is made when it is needed first. */
  push: 'head' | 'repository' | 'fork' | 'none';
  /** Why nothing can be pushed; `git`: the start says so itself. */
  because?: 'deleted' | 'never' | 'forbidden' | 'git';
  /** Full name of the user's own fork, once it was pushed to. */
  fork?: string;
}

/** Whether the files may be those of a stranger, whose scripts are not run unread. */
export function isForeign(place: WorkPlace | null | undefined): boolean {
  return (place?.head ?? null) !== null && place?.push !== 'head';
}

/** The branch of a pull request in the sandbox: that of a deleted fork may have the name of another one. */
export function headBranch({ repository, branch, number }: ForkHead): string {
  return repository === null ? `pull-${number}` : branch;
}

/** The fork that has what was pushed; null: the repository has it. */
export function pushedFork(place: WorkPlace | null | undefined): string | null {
  return (place?.push === 'head' ? place.head?.repository : place?.fork) ?? null;
}

/** What users and agents have to know before the work begins. */
export function workPlaceNote(repository: string, place: WorkPlace): string {
  return [...headNotes(repository, place), pushNote(repository, place)]
    .filter((note) => note !== '')
    .join(' ');
}

function headNotes(repository: string, place: WorkPlace): string[] {
  const { head } = place;
  if (head === null) {
    return [];
  }
  const pull = `pull request #${head.number}`;
  if (head.repository === null) {
    const kept =
      head.ref === null
        ? 'and its host keeps no copy: the default branch is checked out.'
        : `what the host keeps of it is checked out as ${headBranch(head)}.`;
    return [`The fork of ${pull} is deleted, ${kept}`];
  }
  return [
    `The branch ${head.branch} of ${pull} lies in the fork ${head.repository}: origin is the fork, upstream is ${repository}, and it goes to upstream/${head.targetBranch}.`,
    ...(isForeign(place) ? ['Its setup.sh and pre-commit.sh are not run.'] : []),
  ];
}

function pushNote(repository: string, { head, push, because }: WorkPlace): string {
  switch (push) {
    case 'head':
      return `What is pushed to ${head?.branch} of origin is in the pull request.`;
    case 'repository':
      return `There is no right to push to that fork: a branch of another name is pushed to ${repository}, by create_pull_request.`;
    case 'fork':
      return `There is no right to push to ${head?.repository ?? repository}: a branch of another name is pushed to a fork of the user's, which create_pull_request makes.`;
    case 'none':
      return whyNothing(repository, because);
  }
}

/** Why nothing can be pushed. */
export function whyNothing(repository: string, because: WorkPlace['because']): string {
  switch (because) {
    case 'deleted':
      return 'Nothing can be pushed to it.';
    case 'never':
      return `There is no right to push to ${repository}, and fork is never: nothing can be pushed.`;
    case 'forbidden':
      return `There is no right to push to ${repository}, which may not be forked: nothing can be pushed.`;
    default:
      return '';
  }
}
