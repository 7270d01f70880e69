import type { GitOutcome } from '../git/trusted-git.js';

/** A request to merge a branch that is already on the host. */
export interface PullRequest {
  source_branch: string;
  target_branch?: string;
  title: string;
  body: string;
  draft?: boolean;
}

export interface OpenedPullRequest {
  number: number;
  url: string;
}

/**
 * Has a pull request opened by whoever holds the user's token.
 *
 * @throws Error with a reason that the model may read
 */
export type OpenPullRequest = (request: PullRequest, signal: AbortSignal) => Promise<OpenedPullRequest>;

export interface PullRequestOptions {
  open: OpenPullRequest;
  /** Sends a branch of the repository in this folder to its remote. */
  push: (folder: string, branch: string, signal: AbortSignal) => Promise<GitOutcome>;
}
