import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import type { GitServerAddresses, PublicGitServerName } from '../config/git-config.js';
import type { GitProvider, GitServerKind } from './git-provider.js';
import type { RetryTiming } from './provider-http.js';

/** The addresses of the provider, and the clock, chance and pauses of retries. */
export interface GitServerOptions extends GitServerAddresses {
  timing: RetryTiming;
}

/** What is known of a kind of git server before its adapter is loaded. */
export interface GitServerDescriptor {
  readonly kind: GitServerKind;
  /** The name under which users store its tokens. */
  readonly provider: PublicGitServerName;
  /** Whether it is at the provider's default address, where tokens without a host go. */
  readonly isPublic: boolean;
  /** Where servers of a token's own host are: at its root, below a path too, or nowhere. */
  readonly ownHosts: 'none' | 'root' | 'path';
  /** The environment variable in which tools look for a token. */
  readonly tokenVariable: string;
  /** A sentence with the right form for a token that can never work, without any part of it; else null. */
  readonly tokenProblem: (token: string) => string | null;
  /** Loads the adapter: the schemas and octokit would add about 80 ms to every start. */
  readonly load: (http: GuardedHttpClient, options: GitServerOptions) => Promise<GitProvider>;
}
