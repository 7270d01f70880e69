export interface ChangeRequestRef {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  repository: string;
  number: number;
}

export interface FollowedCheck {
  /** Stays while the state of a run changes; a run for another commit has another one. */
  id: string;
  name: string;
  state: 'passed' | 'failed' | 'pending';
  url: string | null;
}

export interface FollowedComment {
  id: string;
  /** What an answer belongs to; null where the host has no threads for it. */
  threadId: string | null;
  /** Login, for people. */
  author: string;
  /** Written by the account of the token. */
  own: boolean;
  /** Written by an app, or the account of a token; false where the host does not say. */
  isBot: boolean;
  /** The author may write to the repository; null where the host does not say, and for other members. */
  mayWrite: boolean | null;
  /** Text of a stranger, clipped. */
  body: string;
  path: string | null;
  line: number | null;
  url: string | null;
  /** Epoch milliseconds. */
  createdAt: number;
  /** Null for a comment that is nothing to resolve, such as the text of a review. */
  resolved: boolean | null;
}

export interface FollowedChangeRequest {
  state: 'open' | 'merged' | 'closed';
  url: string;
  /** As the host writes it: 12 digits on Bitbucket Cloud, and empty where a branch that was merged is deleted. */
  headSha: string;
  /** `unknown` while the host computes them. */
  conflicts: 'yes' | 'no' | 'unknown';
  approved: boolean;
  /** Those of `headSha`, the newest run of each. */
  checks: FollowedCheck[];
  /** The newest, oldest first: those of threads, those without, and the texts of reviews. */
  comments: FollowedComment[];
  /** There are, or may be, more checks or unresolved comments than these. */
  truncated: boolean;
}
