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
  /** Environment of `git push`, with the credential helper. */
  gitEnvironment: () => Record<string, string>;
}
