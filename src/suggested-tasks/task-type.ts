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
