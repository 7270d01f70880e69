/** Values of `git_provider` on the wire. */
export const PROVIDER_TYPES = ['github', 'gitlab', 'bitbucket', 'enterprise_sso'] as const;
export type ProviderType = (typeof PROVIDER_TYPES)[number];

/** The software that answers behind a provider; one adapter each. */
export type ForgeKind = 'github' | 'gitlab' | 'bitbucket' | 'bitbucket_dc';

/** Why a provider gave no answer, or only part of one (values of `code` in `X-Provider-Status`). */
export const PROVIDER_ERROR_CODES = [
  'unauthorized',
  'rate_limited',
  'insufficient_scope',
  'sso_required',
  'unsupported',
  'unavailable',
  'timeout',
  'not_linked',
  'reauth_required',
] as const;
export type ProviderErrorCode = (typeof PROVIDER_ERROR_CODES)[number];

/** A user's credential for one call. */
export interface ProviderAuth {
  /** The secret as the user stored it. */
  token: string;
  /**
   * Canonical host the token was stored with (`gitlab.example.com`, `git.example.com/context`, or an
   * allowlisted origin such as `http://127.0.0.1:9101`); null for the provider's default address.
   */
  host: string | null;
}

/** What bounds one call. */
export interface ProviderCall {
  /** Aborts at the endpoint's deadline. */
  signal: AbortSignal;
  /** Moment the caller stops waiting, epoch milliseconds; optional extra requests check it first. */
  deadlineAt: number;
  /** Set where the stored secret can rotate (a Keycloak refresh token): stores its successor. */
  replaceToken?: (token: string) => Promise<void>;
}

/** `unknown` counts as "no" in classification, and shortens how long the answer is kept. */
export type Signal = 'yes' | 'no' | 'unknown';

/** A repository and when it was last active. */
export interface RepositoryActivity {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  name: string;
  /** Epoch milliseconds of the newest push or activity; null where the provider does not tell (Data Center). */
  activeAt: number | null;
  /** False for archived or disabled repositories: nothing in them is suggested. */
  usable: boolean;
}

/** An open pull or merge request whose author is the user. */
export interface ChangeRequest {
  repository: RepositoryActivity;
  number: number;
  title: string;
  /** Epoch milliseconds. */
  updatedAt: number;
  draft: boolean;
  conflicts: Signal;
  failingChecks: Signal;
  unresolvedComments: Signal;
}

/** An open issue assigned to the user. */
export interface AssignedIssue {
  repository: RepositoryActivity;
  number: number;
  title: string;
  /** Epoch milliseconds. */
  updatedAt: number;
}

/** A recent repository that was looked into for agent instructions. */
export interface ProbedRepository extends RepositoryActivity {
  /** The user may push, and the repository is not archived, empty, a fork or a mirror. */
  writable: boolean;
  hasAgentInstructions: boolean;
}

/** Everything one provider knows about a user's open work, before classification and ranking. */
export interface ProviderWork {
  changeRequests: ChangeRequest[];
  issues: AssignedIssue[];
  /** Recently active repositories, newest first. */
  recentRepositories: RepositoryActivity[];
  probedRepositories: ProbedRepository[];
  /** The provider had more change requests or issues than were read. */
  truncated: boolean;
  /** Why parts are missing; empty when everything was read. Partial data counts as success. */
  gaps: ProviderErrorCode[];
}

/** Result of asking a provider whether it knows a token. */
export type TokenCheck =
  | { status: 'valid' }
  /** Definite rejection by the provider itself. */
  | { status: 'invalid' }
  /** The provider gave no verdict (unreachable, rate limited, missing scope …). */
  | { status: 'unverified'; code: ProviderErrorCode };

/** A change request to open. */
export interface NewChangeRequest {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  repository: string;
  /** Branch with the changes, in that repository. */
  sourceBranch: string;
  /** Where they shall go; null for the repository's default branch. */
  targetBranch: string | null;
  title: string;
  /** Markdown. */
  body: string;
  draft: boolean;
}

/** A change request that is open now. */
export interface OpenedChangeRequest {
  number: number;
  /** Its page, http or https. */
  url: string;
}

/** What git authenticates with over HTTP. */
export interface GitCredential {
  username: string;
  /** A secret. */
  password: string;
}

/** The account behind a token. */
export interface ProviderUser {
  id: string;
  login: string;
  avatarUrl: string;
  company: string | null;
  name: string | null;
  email: string | null;
}
