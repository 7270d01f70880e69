import type { GitProvider } from './git-provider.js';

/** What is read of a provider and kept for a while. */
export type GitReader = Pick<
  GitProvider,
  | 'kind'
  | 'workPolicy'
  | 'serverOf'
  | 'cloneUrl'
  | 'findWork'
  | 'getUser'
  | 'searchRepositories'
  | 'searchBranches'
  | 'listInstallations'
>;
