import type { ChangeRequest, ProbedRepository } from '../git-providers/git-provider.types.js';
import type { TaskType } from './task-type.js';

/**
 * The one task of an open change request, the most pressing first; an unknown signal counts as "no".
 *
 * @returns null when there is nothing to do: a draft with no problem
 */
export function classifyChangeRequest(
  change: Pick<ChangeRequest, 'conflicts' | 'failingChecks' | 'unresolvedComments' | 'draft'>,
): TaskType | null {
  if (change.conflicts === 'yes') {
    return 'MERGE_CONFLICTS';
  }
  if (change.failingChecks === 'yes') {
    return 'FAILING_CHECKS';
  }
  if (change.unresolvedComments === 'yes') {
    return 'UNRESOLVED_COMMENTS';
  }
  return change.draft ? null : 'OPEN_PR';
}

/** Whether suggesting to write agent instructions for a repository makes sense. */
export function lacksAgentInstructions(repository: ProbedRepository): boolean {
  return repository.usable && repository.writable && !repository.hasAgentInstructions;
}
