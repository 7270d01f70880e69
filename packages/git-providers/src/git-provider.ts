import { PUBLIC_GIT_SERVER_NAMES, type PublicGitServerName } from './public-git-servers.js';
import type { Forks } from './forks.js';
import type {
  BranchQuery,
  FoundBranch,
  FoundRepository,
  Listing,
  ListRange,
  RepositoryQuery,
} from './repository-lists.js';

export interface ChangeRequestRef {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  repository: string;
  number: number;
}

export interface FollowedCheck {
  /** Stays while the state of a run changes; a run for another commit has another one. */
  id: string;
  name: string;
  state: 'passed' | 'failed' | 'pending';
  url: string | null;
}

export interface FollowedComment {
  id: string;
  /** What an answer belongs to; null where the host has no threads for it. */
  threadId: string | null;
  /** Login, for people. */
  author: string;
  /** Written by the account of the token. */
  own: boolean;
  /** Written by an app, or the account of a token; false where the host does not say. */
  isBot: boolean;
  /** The author may write to the repository; null: the host is to be asked. */
  mayWrite: boolean | null;
  /** What the host is asked with; by default, the author's login. */
  account?: string;
  /** Text of a stranger, clipped. */
  body: string;
  path: string | null;
  line: number | null;
  url: string | null;
  /** Epoch milliseconds. */
  createdAt: number;
  /** Whether the thread is resolved; null for a comment that cannot be, such as the text of a review. */
  resolved: boolean | null;
}

export type CommentPlace = Pick<FollowedComment, 'id' | 'threadId'>;

export interface FollowedChangeRequest {
  state: 'open' | 'merged' | 'closed';
  url: string;
  /** The host's own form: 12 digits on Bitbucket Cloud, and empty when a merged branch was deleted. */
  headSha: string;
  /** `unknown` while the host computes them. */
  conflicts: 'yes' | 'no' | 'unknown';
  approved: boolean;
  /** Those of `headSha`, the newest run of each. */
  checks: FollowedCheck[];
  /** The newest, oldest first: those of threads, those without, and the texts of reviews. */
  comments: FollowedComment[];
  /** There are, or may be, more checks or unresolved comments than these. */
  truncated: boolean;
}

/** What a webhook tells of; several numbers and commits are tried. */
export interface ToldChangeRequest {
  repository: string;
  numbers: number[];
  shas: string[];
}

/** Who has caused an event of a host, or written a comment there. */
export interface HostActor {
  /** What the host is asked with: login (GitHub), id (GitLab), UUID (Bitbucket), user name (Data Center). */
  name: string;
  /** Stays when the account is renamed; null where the host does not say it. */
  id: string | null;
  /** The host itself says that the repository is theirs. */
  isOwner: boolean;
}

export interface ActorRights {
  /** May push to the repository. */
  mayWrite: boolean;
  /** It is the account of the token. */
  isSelf: boolean;
}

/** The servers that every user may store tokens of, and the one of the operator's sign-in. */
export const PROVIDER_TYPES = [...PUBLIC_GIT_SERVER_NAMES, 'enterprise_sso'] as const;
export type ProviderType = (typeof PROVIDER_TYPES)[number];

export type GitServerKind = PublicGitServerName | 'bitbucket_dc';

/** Values of `code` in `X-Provider-Status`. */
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
  'needs_login',
] as const;
export type ProviderErrorCode = (typeof PROVIDER_ERROR_CODES)[number];

export type GapReasons = Partial<Record<ProviderErrorCode, string>>;

export interface ProviderAuth {
  token: string;
  /** Canonical host, such as `git.example.com/context`; null for the provider's default address. */
  host: string | null;
}

export interface CallBounds {
  /** Aborts at the endpoint's deadline. */
  signal: AbortSignal;
  /** Epoch milliseconds when the caller stops waiting; optional extra requests check it first. */
  deadlineAt: number;
  /** The user of the current request by default. */
  userId?: string;
}

/** A token, and how long its provider may take. */
export interface ProviderCall extends ProviderAuth, CallBounds {
  /** The token is an installation's, which has no account: this is whom it stands in for. */
  standIn?: { login: string | null };
  /** Stores the successor of a secret that can rotate (a Keycloak refresh token). */
  replaceToken?: (token: string) => Promise<void>;
  /** The token stored now, which no other call of any replica uses until `releaseToken`; null while one does. */
  claimToken?: () => Promise<string | null>;
  releaseToken?: () => Promise<void>;
}

/** A call that ends after `milliseconds`; `now` is epoch milliseconds. */
export function boundedCall(milliseconds: number, now: number): CallBounds {
  return { signal: AbortSignal.timeout(milliseconds), deadlineAt: now + milliseconds };
}

/** `unknown` counts as "no" in classification, and the work is kept for a shorter time. */
export type Signal = 'yes' | 'no' | 'unknown';

export interface RepositoryActivity {
  name: string;
  /** Epoch milliseconds of the newest push or activity; null if unknown (Data Center). */
  activeAt: number | null;
  /** False for archived or disabled repositories, which get no suggestions. */
  usable: boolean;
}

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

export interface AssignedIssue {
  repository: RepositoryActivity;
  number: number;
  title: string;
  /** Epoch milliseconds. */
  updatedAt: number;
}

export interface ProbedRepository extends RepositoryActivity {
  /** The user may push, and the repository is not archived, empty, a fork or a mirror. */
  writable: boolean;
  hasAgentInstructions: boolean;
}

export interface ProviderWork {
  changeRequests: ChangeRequest[];
  issues: AssignedIssue[];
  recentRepositories: RepositoryActivity[];
  probedRepositories: ProbedRepository[];
  /** The provider had more change requests or issues than were read. */
  truncated: boolean;
  /** Why parts are missing. Partial data counts as success. */
  gaps: ProviderErrorCode[];
  /** What the host said of them, fit to show. */
  gapReasons?: GapReasons;
}

export interface WorkPolicy {
  /** Milliseconds for which the work is served without asking again. */
  freshMs: number;
  /** The same while the provider still computes the conflicts of a change request. */
  freshWhileComputingMs: number;
  maxChangeRequests: number;
}

export type TokenCheck =
  | { status: 'valid' }
  /** Rejected by the provider itself. */
  | { status: 'invalid'; said?: string }
  /** No verdict (unreachable, rate limited, missing scope …). */
  | { status: 'unverified'; code: ProviderErrorCode; said?: string };

export interface NewChangeRequest {
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  repository: string;
  sourceBranch: string;
  /** The branch to merge into; null means the default branch. */
  targetBranch: string | null;
  title: string;
  body: string;
  draft: boolean;
  /** Full name of the fork that has the source branch; absent: the repository itself. */
  fork?: string;
}

export interface OpenedChangeRequest {
  number: number;
  /** Http or https page. */
  url: string;
}

/** The pull or merge requests of a git server. */
export interface ChangeRequests {
  /** Opens one, or returns the one that is open for the same branches. @throws GitProviderError with a `reason` for a refusal */
  open(request: NewChangeRequest): Promise<OpenedChangeRequest>;

  /**
   * Reads change requests in the order of `refs`, with one query if the host can; null for one that is gone or hidden from
   * the token.
   * @throws GitProviderError when one of them could not be read this time
   */
  read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]>;

  /** The last lines that a check wrote, at most 4,000 characters; empty where the host has none. */
  output(ref: ChangeRequestRef, check: FollowedCheck): Promise<string>;

  /**
   * Answers a comment, in its thread where it has one. Sent once: if the response is lost, it may have been written.
   * The id is the one that {@link read} gives for the answer.
   * @throws GitProviderError with a `reason` when the host refuses
   */
  reply(ref: ChangeRequestRef, comment: CommentPlace, body: string): Promise<{ id: string }>;
}

/**
 * Escapes commands in text that an agent wrote: hosts and their apps take lines that begin with a slash (`/merge`) for
 * commands of the account that posts them. Blocks of code are no exception, since each host has its own idea of where they
 * end.
 */
export function withoutCommands(text: string): string {
  return text.replaceAll(/^([ \t]*)\/(?=[a-z])/gim, String.raw`$1\/`);
}

export interface GitCredential {
  username: string;
  password: string;
  /** Where the server may take no password: below this address it is sent as a bearer token at once. */
  bearer?: string;
}

/** How to find one change request or issue in the REST API, in the words of its users. */
export interface ApiGuide {
  /** Has no trailing slash. */
  apiUrl: string;
  noun: 'pull request' | 'merge request';
  change: string;
  changeUrl: string;
  checks: string;
  comments: string;
  issueUrl: string;
  /** `email-and-token`: as `bearer`, unless the token has an email address before it. */
  authorization: 'bearer' | 'email-and-token';
}

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

/** A failure of a provider. The message is fixed text: never an upstream body, address or token. */
export class GitProviderError extends Error {
  readonly retryAfterSeconds: number | null;
  /** Why a change was refused, fit to show: clipped, without the token. `said` is the same for other failures. */
  readonly reason: string | null;
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

/** Policy for providers that allow several thousand requests an hour and compute conflicts in the background. */
const USUAL_WORK_POLICY: WorkPolicy = {
  freshMs: 60_000,
  freshWhileComputingMs: 15_000,
  maxChangeRequests: 50,
};

/**
 * Port to a git server. Implementations only translate: they keep no state of users, take credentials per call, and
 * call no other host than the one that the credentials name.
 */
export abstract class GitProvider {
  abstract readonly kind: GitServerKind;

  /** Limits for the use of {@link findWork}'s result. */
  get workPolicy(): WorkPolicy {
    return USUAL_WORK_POLICY;
  }

  /** Address of the server behind a host; equal texts of one `kind` are the same server, for deduplication. */
  abstract serverOf(host: string | null): string;

  /** Addresses and words of the REST API for one change request or issue. */
  abstract apiGuide(host: string | null, repository: string, number: number): ApiGuide;

  /** Reads a user's open work; `gaps` tells what is missing. @throws GitProviderError when nothing could be read */
  abstract findWork(call: ProviderCall): Promise<ProviderWork>;

  /** Asks the provider, in one request, whether it accepts the token. Never throws for a response. */
  abstract checkToken(call: ProviderCall): Promise<TokenCheck>;

  /** The account behind the token. @throws GitProviderError when the provider sends none */
  abstract getUser(call: ProviderCall): Promise<ProviderUser>;

  /** Lists the user's repositories. @throws GitProviderError with a `reason` for an unknown installation */
  abstract searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>>;

  /** Lists a repository's branches. @throws GitProviderError with a `reason` for an unknown repository */
  abstract searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>>;

  /** Lists filters for repositories: GitHub app installations, Bitbucket workspaces or projects; none on GitLab. */
  abstract listInstallations(range: ListRange, call: ProviderCall): Promise<Listing<string>>;

  /** What an account may do in a repository. @throws GitProviderError when the token may not ask, or the host does not answer */
  abstract rightsOf(actor: HostActor, repository: string, call: ProviderCall): Promise<ActorRights>;

  /** Works with pull or merge requests. @throws GitProviderError also when the provider must be asked for a token */
  abstract changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T>;

  /** Works with forks. @throws GitProviderError as {@link changeRequests} */
  abstract forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T>;

  /** Address for `git clone`, without credentials. @throws GitProviderError with a `reason` for an impossible name */
  abstract cloneUrl(host: string | null, repository: string): string;

  /** Credentials for {@link cloneUrl}. @throws GitProviderError when the provider must be asked and gives none */
  abstract gitCredential(call: ProviderCall): Promise<GitCredential>;

  /** The stored token, unless that stands for another. @throws GitProviderError as `gitCredential` */
  apiToken({ token }: ProviderCall): Promise<string> {
    return Promise.resolve(token);
  }
}
