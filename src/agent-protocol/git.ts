/** How a git server lets a user in over http(s). */
export interface GitCredential {
  /** Scheme, host and port: `https://github.com`. It is given to no other server. */
  origin: string;
  username: string;
  /** Token or password. */
  password: string;
}

/** Who commits. */
export interface GitIdentity {
  name: string;
  email: string;
}

/** What a conversation may do on git servers; kept in memory only. */
export interface GitAccess {
  credentials: GitCredential[];
  /**
   * Whether tools get the credentials through git's credential helper. Otherwise only the agent server itself fetches,
   * pushes and clones with them, when the agent asks it to.
   */
  expose: boolean;
  identity: GitIdentity | null;
}

/** A file that differs from where the branch began. */
export interface GitChange {
  status: 'MOVED' | 'ADDED' | 'DELETED' | 'UPDATED';
  /** Relative to the repository. */
  path: string;
}

/** Both sides of a file's change; null where there is none. */
export interface GitDiff {
  modified: string | null;
  original: string | null;
}

/**
 * Body of `POST /api/git/prepare` (ours alone): makes a folder a repository that can be worked in. The answer comes
 * when that is done, so allow for the time that it takes. It may be asked again: a folder that is a repository already
 * is left as it is, and who asks while it is being made gets the answer of the one attempt.
 */
export interface GitPrepareRequest {
  /** http(s) address without credentials; null: an empty repository is made. */
  url: string | null;
  /** Absolute, or relative to the workspace; inside of it. It must not exist yet, or be empty. */
  directory: string;
  /** Branch of the remote that is checked out; null: its default branch. */
  branch: string | null;
  /** Branch that is made then, from what is checked out. */
  new_branch?: string | null;
  /** Both null: without credentials. They are kept no longer than the clone takes. */
  username: string | null;
  password: string | null;
  /** Written into the configuration of this repository. */
  identity: GitIdentity | null;
  /** Seconds; 600 by default. */
  timeout?: number;
}

/** Why a repository could not be made; `failed`: see its output. */
export type GitPrepareFailure =
  /** The server refused the credentials, or wants some. */
  | 'authentication'
  /** No such repository, or none that these credentials may see. */
  | 'repository_not_found'
  | 'branch_not_found'
  /** The server's name or address cannot be reached. */
  | 'unreachable'
  /** The folder has other content. */
  | 'directory_not_empty'
  | 'no_space'
  | 'timeout'
  | 'failed';

/** Answer to a `GitPrepareRequest`, status 200 also when it failed. */
export interface GitPrepareAnswer {
  ok: boolean;
  /** null when all went well. */
  failure: GitPrepareFailure | null;
  /** The last lines that git wrote, secrets masked. */
  output: string;
  /** Commit that is checked out; null in a repository without one. */
  head: string | null;
  /** Branch that is checked out. */
  branch: string | null;
}
