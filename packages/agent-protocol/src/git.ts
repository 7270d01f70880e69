/** A user's credentials for a git server over http(s). */
export interface GitServerCredential {
  /** Scheme, host and port: `https://github.com`. No other server gets the credentials. */
  origin: string;
  username: string;
  /** Token or password. */
  password: string;
}

/** The author of commits. */
export interface GitIdentity {
  name: string;
  email: string;
}

/** What a conversation may do on git servers. Kept in memory only. */
export interface GitAccess {
  credentials: GitServerCredential[];
  /**
   * Whether tools get the credentials, through git's credential helper. Otherwise only the agent server uses them, to
   * fetch, push and clone on behalf of the agent.
   */
  expose: boolean;
  identity: GitIdentity | null;
}

/** A file that changed since the branch began. */
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
  /** ISO 8601 with zone. */
  timestamp: string;
}

export interface GitCommitsPage {
  /** Newest first. */
  commits: GitCommit[];
  has_more: boolean;
}

/** Both sides of a file's change: empty where the file does not exist, null outside of repositories. */
export interface GitDiff {
  modified: string | null;
  original: string | null;
}

/**
 * Body of `POST /api/git/prepare` (not in the published API): clones or creates a repository in a folder. The response
 * comes when that is done, so allow for the time that it takes. The request can be repeated: a folder that is a
 * repository already is left alone, and requests during an attempt share its result.
 */
export interface GitPrepareRequest {
  /** http(s) address without credentials; null: an empty repository is created. */
  url: string | null;
  /** Absolute, or relative to the workspace, and inside of it. Must not exist yet, or be empty. */
  directory: string;
  /** Branch of the remote to check out; null: its default branch. */
  branch: string | null;
  /** Branch to create from what was checked out. */
  new_branch?: string | null;
  /** Both null: no credentials. They are dropped after the clone. */
  username: string | null;
  password: string | null;
  /** Written into the configuration of this repository. */
  identity: GitIdentity | null;
  /** Whether submodules at the origin of the address are fetched, with the same credentials; false by default. */
  submodules?: boolean;
  /** Whether files of Git LFS are fetched in place of their pointers; false by default. */
  lfs?: boolean;
  /** Seconds; 600 by default. */
  timeout?: number;
}

/** Why a repository could not be prepared; `failed`: see the output. */
export type GitPrepareFailure =
  /** The server rejected the credentials, or requires some. */
  | 'authentication'
  /** The repository does not exist, or these credentials may not see it. */
  | 'repository_not_found'
  | 'branch_not_found'
  /** The server's name or address cannot be reached. */
  | 'unreachable'
  /** The folder has other content. */
  | 'directory_not_empty'
  | 'no_space'
  | 'timeout'
  | 'failed';

/** Response to a `GitPrepareRequest`, with status 200 also if the preparation failed. */
export interface GitPrepareResponse {
  ok: boolean;
  /** null on success. */
  failure: GitPrepareFailure | null;
  /** The last lines that git wrote, secrets masked. */
  output: string;
  /** The commit that is checked out; null in a repository without commits. */
  head: string | null;
  /** The branch that is checked out. */
  branch: string | null;
  /** What is not as the user may expect, in sentences for them; empty also where the repository was there before. */
  notices: string[];
}

/**
 * The file in a repository's `.git` folder that has the variables of its setup script, a line for each: its name, `=` and
 * its value as bash reads it. The service writes it, agents' shells read it.
 */
export const SETUP_ENVIRONMENT = 'slipway-setup-env';
