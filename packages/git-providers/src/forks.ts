/** The branch that the commits of a change request come from. */
export interface ChangeHead {
  /** Full name; null: deleted, or hidden from the token. */
  repository: string | null;
  branch: string;
  targetBranch: string;
  /** Ref under which the target repository keeps the commits itself; null when the host has none. */
  ref: string | null;
  /** Who may push to the repository that it goes to may push to the branch. */
  allowsMaintainers: boolean;
}

/** What the user of the token may do with a repository. */
export interface OwnRights {
  push: boolean;
  fork: boolean;
}

/** The repositories that people work in who may not push to another one. */
export interface Forks {
  /** Returns null for a change request that is gone or hidden from the token. */
  head(repository: string, number: number): Promise<ChangeHead | null>;

  rights(repository: string): Promise<OwnRights>;

  /**
   * The user's fork, which is made where there is none, as soon as its branches can be read.
   * @returns its full name @throws GitProviderError with a `reason` when the host refuses, or takes too long
   */
  own(repository: string): Promise<string>;
}
