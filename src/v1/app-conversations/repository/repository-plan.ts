import type { GitIdentity } from '../../../agent-protocol/git-access.js';
import type { ProviderType } from '../../../git-providers/git-provider.types.js';

/** A repository as it is to be in a sandbox. */
export interface RepositoryPlan {
  provider: ProviderType;
  /** As the user named it. */
  name: string;
  /** http(s), without credentials. */
  url: string;
  /** Null: anonymously. */
  credential: { username: string; password: string } | null;
  /** Absolute. */
  folder: string;
  /** Null: the default branch, from which a branch for the conversation's work is made. */
  branch: string | null;
  newBranch: string | null;
  identity: GitIdentity;
}
