import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import type { GitServerAddresses, PublicGitServerName } from '../config/git-config.js';
import type { GitProvider, GitServerKind } from './git-provider.js';
import type { RetryTiming } from './provider-http.js';

export interface GitServerOptions extends GitServerAddresses {
  timing: RetryTiming;
}

/** What is known of a kind of git server before its adapter is loaded. */
export interface GitServerDescriptor {
  readonly kind: GitServerKind;
  readonly provider: PublicGitServerName;
  /** Whether tokens without a host go to it. */
  readonly isPublic: boolean;
  /** Where a token's own host may have servers: at its root, below a path too, or nowhere. */
  readonly ownHosts: 'none' | 'root' | 'path';
  readonly tokenVariable: string;
  /** A sentence with the right form for a token that can never work; it contains no part of the token. */
  readonly tokenProblem: (token: string) => string | null;
  /** Loaded on demand: the schemas and octokit would add about 80 ms to every start. */
  readonly load: (http: GuardedHttpClient, options: GitServerOptions) => Promise<GitProvider>;
}
