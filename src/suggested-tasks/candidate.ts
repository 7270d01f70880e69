import { ascending, descending } from '../common/compare.js';
import {
  type GitServerKind,
  PROVIDER_TYPES,
  type ProviderType,
  type WorkPolicy,
} from '../git-providers/git-provider.js';

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

/**
 * The total order of suggested tasks: the most recently active repository first; then by type, newest, number (highest
 * first), provider, name. The same candidates in any order give the same list.
 */
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

/** One entry per work item; of the same item reached twice, the direct token's wins over enterprise_sso's. */
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
