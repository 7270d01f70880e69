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
