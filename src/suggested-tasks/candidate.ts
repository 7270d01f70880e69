import type { GitServerKind, ProviderType, WorkPolicy } from '../git-providers/git-provider.js';

/** Kinds of suggested work, in the order in which they are shown within a repository. */
export const TASK_TYPES = [
  'MERGE_CONFLICTS',
  'FAILING_CHECKS',
  'UNRESOLVED_COMMENTS',
  'OPEN_ISSUE',
  'OPEN_PR',
  'CREATE_MICROAGENT',
] as const;

export type TaskType = (typeof TASK_TYPES)[number];

/** A suggested task with what ranking needs to know about it. */
export interface Candidate {
  provider: ProviderType;
  type: TaskType;
  repository: string;
  /** 0 for CREATE_MICROAGENT. */
  number: number;
  title: string;
  /** Epoch milliseconds; the repository's time for CREATE_MICROAGENT. */
  updatedAt: number;
  /** Epoch milliseconds of the repository's newest activity; -Infinity when nothing tells. */
  repositoryActiveAt: number;
  /** Equal for the same work item, however it was reached. */
  identity: string;
}

/** Where a provider's work came from. */
export interface WorkSource {
  provider: ProviderType;
  kind: GitServerKind;
  /** Address of the server, see `GitProvider.serverOf`. */
  server: string;
  policy: WorkPolicy;
}
