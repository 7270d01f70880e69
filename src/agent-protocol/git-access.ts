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
