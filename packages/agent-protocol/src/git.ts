export interface GitServerCredential {
  /** `https://github.com`; other servers do not get the credentials. */
  origin: string;
  username: string;
  password: string;
}

export interface GitIdentity {
  name: string;
  email: string;
}

/** Kept in memory only. */
export interface GitAccess {
  credentials: GitServerCredential[];
  /** Whether tools get the credentials, through git's credential helper; the agent server uses them anyway. */
  expose: boolean;
  identity: GitIdentity | null;
}

export interface GitChange {
  status: 'MOVED' | 'ADDED' | 'DELETED' | 'UPDATED';
  /** Relative to the repository. */
  path: string;
}

export interface GitCommit {
  sha: string;
  short_sha: string;
  subject: string;
  author: string;
  timestamp: string;
}

export interface GitCommitsPage {
  commits: GitCommit[];
  has_more: boolean;
}

export interface GitDiff {
  modified: string | null;
  original: string | null;
}

/** Answered when the clone is done (not in the published API). A repeated request leaves repositories alone. */
export interface GitPrepareRequest {
  /** http(s) without credentials; null: an empty repository is created. */
  url: string | null;
  /** Inside the workspace, and absent or empty. */
  directory: string;
  branch: string | null;
  new_branch?: string | null;
  username: string | null;
  password: string | null;
  identity: GitIdentity | null;
  /** Only submodules at the origin of the address, with the same credentials. */
  submodules?: boolean;
  lfs?: boolean;
  /** Seconds; 600 by default. */
  timeout?: number;
}

export type GitPrepareFailure =
  | 'authentication'
  | 'repository_not_found'
  | 'branch_not_found'
  | 'unreachable'
  | 'directory_not_empty'
  | 'no_space'
  | 'timeout'
  | 'failed';

export interface GitPrepareResponse {
  ok: boolean;
  failure: GitPrepareFailure | null;
  /** The last lines that git wrote, secrets masked. */
  output: string;
  /** Null in a repository without commits. */
  head: string | null;
  branch: string | null;
  /** What may surprise the user; empty where the repository was there before. */
  notices: string[];
}

/** Not in the published API. The credentials are for the server of the address only. */
export interface GitPushRequest {
  url: string;
  /** Inside the repository. */
  directory: string;
  /** Null: the branch that is checked out. */
  branch: string | null;
  username: string | null;
  password: string | null;
}

export interface GitPushResponse {
  ok: boolean;
  branch: string | null;
  /** The last lines that git wrote, secrets masked. */
  output: string;
}

/** Variables of the setup script, in a repository's `.git`: lines of name, `=` and the value as bash reads it. */
export const SETUP_ENVIRONMENT = 'slipway-setup-env';
