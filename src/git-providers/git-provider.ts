import { PUBLIC_GIT_SERVER_NAMES, type PublicGitServerName } from '../config/git-config.js';
import type {
  BranchQuery,
  FoundBranch,
  FoundRepository,
  Listing,
  ListRange,
  RepositoryQuery,
} from './repository-lists.js';

/** Values of `git_provider` on the wire. */
export type ProviderType = PublicGitServerName | 'enterprise_sso';
export const PROVIDER_TYPES: readonly ProviderType[] = [...PUBLIC_GIT_SERVER_NAMES, 'enterprise_sso'];

/** The software behind a provider; one adapter each. */
export type GitServerKind = PublicGitServerName | 'bitbucket_dc';

/** Why a provider could not be read, or only in part (values of `code` in `X-Provider-Status`). */
export const PROVIDER_ERROR_CODES = [
  'unauthorized',
  'rate_limited',
  'insufficient_scope',
  'sso_required',
  'query_too_large',
  'blocked_by_policy',
  'unsupported',
  'unavailable',
  'timeout',
  'not_linked',
  'reauth_required',
] as const;
export type ProviderErrorCode = (typeof PROVIDER_ERROR_CODES)[number];

/** What a host said of its failures, fit to show. */
export type GapReasons = Partial<Record<ProviderErrorCode, string>>;

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
  /** Who asks; without it, the user of the current request. */
  userId?: string;
  /** Set where the stored secret can rotate (a Keycloak refresh token): stores its successor. */
  replaceToken?: (token: string) => Promise<void>;
  /** Set with `replaceToken`: what is stored now; null: nothing. Another replica may have stored a successor. */
  storedToken?: () => Promise<string | null>;
}

/** @param now epoch milliseconds */
export function boundedCall(milliseconds: number, now: number): ProviderCall {
  return { signal: AbortSignal.timeout(milliseconds), deadlineAt: now + milliseconds };
}

/** `unknown` counts as "no" in classification, and shortens how long the work is kept. */
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
  /** What the host said of them, by code. */
  gapReasons?: GapReasons;
}

/** How a provider's work is used once it is read. */
export interface WorkPolicy {
  /** How long it is served without asking again, in milliseconds. */
  freshMs: number;
  /** The same while the provider is still computing the conflicts of a change request. */
  freshWhileComputingMs: number;
  /** Change requests that become suggestions, the newest first. */
  maxChangeRequests: number;
}

/** Result of asking a provider whether it knows a token. */
export type TokenCheck =
  | { status: 'valid' }
  /** Definite rejection by the provider itself. */
  | { status: 'invalid'; said?: string }
  /** The provider gave no verdict (unreachable, rate limited, missing scope …). */
  | { status: 'unverified'; code: ProviderErrorCode; said?: string };

/** A change request to open. */
export interface NewChangeRequest {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  repository: string;
  /** Branch with the changes, in that repository. */
  sourceBranch: string;
  /** Where they should go; null for the repository's default branch. */
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

/** Where the REST API tells about one change request or issue, and in which words its users speak of it. */
export interface ApiGuide {
  /** Base address of the API, without a trailing slash. */
  apiUrl: string;
  /** What the server calls a change request. */
  noun: 'pull request' | 'merge request';
  /** How people write one with its number. */
  change: string;
  /** Address of the change request: its branches, its state. */
  changeUrl: string;
  /** Where the results of its checks are, as part of a sentence. */
  checks: string;
  /** Where its review comments are, as part of a sentence. */
  comments: string;
  /** Where an issue of that number is. */
  issueUrl: string;
  /** How a request carries the token; `email-and-token`: as `bearer`, unless the token has an email address before it. */
  authorization: 'bearer' | 'email-and-token';
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

interface GitProviderErrorOptions {
  cause?: unknown;
  retryAfterSeconds?: number | null;
  reason?: string | null;
  said?: string | null;
}

/** A provider that sent nothing usable. The message is fixed text: never an upstream body, address or token. */
export class GitProviderError extends Error {
  readonly retryAfterSeconds: number | null;
  /** Why a change was refused, fit to show: what the provider said, clipped and without the token. Null for all else. */
  readonly reason: string | null;
  /** What the host said of any failure, in the same form. */
  readonly said: string | null;

  constructor(
    readonly code: ProviderErrorCode,
    options: GitProviderErrorOptions = {},
  ) {
    super(`git provider failed: ${code}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GitProviderError';
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.reason = options.reason ?? null;
    this.said = options.said ?? null;
  }
}

/** Of providers that allow several thousand requests an hour and compute conflicts in the background. */
const USUAL_WORK_POLICY: WorkPolicy = {
  freshMs: 60_000,
  freshWhileComputingMs: 15_000,
  maxChangeRequests: 50,
};

/**
 * Port to a git server. Implementations translate only: they hold no user's state, take credentials per call,
 * and never call another host than the one the credentials name.
 */
export abstract class GitProvider {
  abstract readonly kind: GitServerKind;

  /** What becomes of {@link findWork}'s result. */
  get workPolicy(): WorkPolicy {
    return USUAL_WORK_POLICY;
  }

  /**
   * Address of the server that credentials with this host reach. Equal texts of one `kind` are the same server, so that
   * work reached in two ways is recognised as the same.
   */
  abstract serverOf(host: string | null): string;

  /**
   * How somebody with the documentation of the REST API finds one piece of work.
   *
   * @param host as in {@link ProviderAuth}
   * @param number of the change request or the issue
   */
  abstract apiGuide(host: string | null, repository: string, number: number): ApiGuide;

  /**
   * Reads the user's open change requests, assigned issues, recent repositories and their agent instructions.
   * Whatever part can be read is returned, with the reasons for missing parts in `gaps`.
   *
   * @throws GitProviderError when nothing at all could be read
   */
  abstract findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork>;

  /** Asks the provider (one request) whether it accepts the token. Never throws for what the provider responds. */
  abstract checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck>;

  /**
   * The account behind the token.
   *
   * @throws GitProviderError when the provider does not send one
   */
  abstract getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser>;

  /**
   * Repositories that the user works with.
   *
   * @throws GitProviderError, with a `reason` for an installation that is not there
   */
  abstract searchRepositories(
    auth: ProviderAuth,
    query: RepositoryQuery,
    call: ProviderCall,
  ): Promise<Listing<FoundRepository>>;

  /**
   * Branches of a repository.
   *
   * @throws GitProviderError with a `reason` for a repository that is not there
   */
  abstract searchBranches(
    auth: ProviderAuth,
    query: BranchQuery,
    call: ProviderCall,
  ): Promise<Listing<FoundBranch>>;

  /**
   * What repositories can be narrowed down to: installations of GitHub's app, workspaces or projects of Bitbucket. Empty
   * where a provider has no such thing.
   *
   * @throws GitProviderError
   */
  abstract listInstallations(
    auth: ProviderAuth,
    range: ListRange,
    call: ProviderCall,
  ): Promise<Listing<string>>;

  /**
   * Opens a change request (pull or merge request). One that is open for the same branches already is returned as it is,
   * so that asking twice changes nothing.
   *
   * @throws GitProviderError with a `reason` when the provider refuses
   */
  abstract openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest>;

  /**
   * Address that git clones a repository from, without credentials.
   *
   * @param host as in {@link ProviderAuth}
   * @throws GitProviderError with a `reason` for a name that no repository has there
   */
  abstract cloneUrl(host: string | null, repository: string): string;

  /**
   * What git authenticates with at {@link cloneUrl}.
   *
   * @throws GitProviderError when the provider must be asked and does not tell
   */
  abstract gitCredential(auth: ProviderAuth, call: ProviderCall): Promise<GitCredential>;

  /**
   * The token that tools call the provider's API with: the stored one, unless that stands for another.
   *
   * @throws GitProviderError when the provider must be asked and does not tell
   */
  apiToken(auth: ProviderAuth, _call: ProviderCall): Promise<string> {
    return Promise.resolve(auth.token);
  }
}
