import { ascending, descending } from '../common/compare.js';
import {
  type GitServerKind,
  PROVIDER_TYPES,
  type ProviderType,
  type WorkPolicy,
} from '../git-providers/git-provider.js';

/** In the order in which they are shown within a repository. */
export const TASK_TYPES = [
  'MERGE_CONFLICTS',
  'FAILING_CHECKS',
  'UNRESOLVED_COMMENTS',
  'OPEN_ISSUE',
  'OPEN_PR',
  'CREATE_MICROAGENT',
] as const;

export type TaskType = (typeof TASK_TYPES)[number];

/** A suggested task with what ranking needs. */
export interface Candidate {
  provider: ProviderType;
  type: TaskType;
  repository: string;
  /** 0 for CREATE_MICROAGENT. */
  number: number;
  title: string;
  /** Epoch milliseconds; the repository's time for CREATE_MICROAGENT. */
  updatedAt: number;
  /** Epoch milliseconds; -Infinity if unknown. */
  repositoryActiveAt: number;
  /** Equal for the same work item, however it was reached. */
  identity: string;
}

export interface WorkSource {
  provider: ProviderType;
  kind: GitServerKind;
  /** See `GitProvider.serverOf`. */
  server: string;
  policy: WorkPolicy;
}

/** Sorts in a total order: most recently active repository, type, newest, highest number, provider, name. */
export function rankTasks(candidates: readonly Candidate[]): Candidate[] {
  return withoutDuplicates(candidates).toSorted(
    (a, b) =>
      descending(a.repositoryActiveAt, b.repositoryActiveAt) ||
      TASK_TYPES.indexOf(a.type) - TASK_TYPES.indexOf(b.type) ||
      descending(a.updatedAt, b.updatedAt) ||
      descending(a.number, b.number) ||
      PROVIDER_TYPES.indexOf(a.provider) - PROVIDER_TYPES.indexOf(b.provider) ||
      ascending(a.repository, b.repository) ||
      ascending(a.title, b.title),
  );
}

/** A user's own token wins over enterprise_sso's for the same item. */
function withoutDuplicates(candidates: readonly Candidate[]): Candidate[] {
  const byIdentity = new Map<string, Candidate>();
  for (const candidate of candidates) {
    const before = byIdentity.get(candidate.identity);
    if (!before || PROVIDER_TYPES.indexOf(candidate.provider) < PROVIDER_TYPES.indexOf(before.provider)) {
      byIdentity.set(candidate.identity, candidate);
    }
  }
  return [...byIdentity.values()];
}
