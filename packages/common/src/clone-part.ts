/** What a partial clone leaves out until it is asked for; see git-rev-list(1), `--filter`. */
export const CLONE_FILTERS = ['blob:none', 'tree:0'] as const;
export type CloneFilter = (typeof CLONE_FILTERS)[number];

/** Commits of each branch. */
export const MAX_CLONE_DEPTH = 10_000;
