import { ascending, descending } from '../common/compare.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { type Candidate, TASK_TYPES } from './candidate.js';

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
