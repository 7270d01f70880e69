import { hasAgentInstructions } from '../agent-instructions.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import {
  type ApiGuide,
  type AssignedIssue,
  type ChangeRequest,
  GitProviderError,
  type OpenedChangeRequest,
  type ProbedRepository,
  type ProviderErrorCode,
  type ProviderUser,
  type ProviderWork,
  type RepositoryActivity,
  type Signal,
} from '../git-provider.js';
import { GapLog, providerReason, refusalCode } from '../provider-errors.js';
import type { FoundBranch, FoundRepository } from '../repository-lists.js';
import type {
  GithubAccount,
  GithubFoundBranch,
  GithubGraphqlError,
  GithubItem,
  GithubListedBranch,
  GithubListedRepository,
  GithubMergeability,
  GithubProbedRepository,
  GithubPullRequest,
  GithubPullRequests,
  GithubRefusal,
  GithubRepositoriesAndIssues,
  GithubRepository,
  GithubRestPullRequest,
  GithubTree,
} from './github.schema.js';

const FAILING_STATES: readonly string[] = ['FAILURE', 'ERROR'];
const WRITING_PERMISSIONS: readonly string[] = ['WRITE', 'MAINTAIN', 'ADMIN'];

/** `rechecked` holds `mergeable` by node id. */
export function mapPullRequests(
  { viewer: { pullRequests } }: GithubPullRequests,
  rechecked: ReadonlyMap<string, string>,
): Pick<ProviderWork, 'changeRequests' | 'truncated'> {
  return {
    changeRequests: pullRequests.nodes.map((pull) => toChangeRequest(pull, rechecked)),
    truncated: pullRequests.pageInfo.hasNextPage,
  };
}

export function undeterminedIds({ viewer }: GithubPullRequests): string[] {
  return viewer.pullRequests.nodes
    .filter(({ mergeable }) => toConflicts(mergeable) === 'unknown')
    .flatMap(({ id }) => id ?? []);
}

export function mapMergeability({ nodes }: GithubMergeability): Map<string, string> {
  return new Map(nodes.map(({ id, mergeable }) => [id, mergeable]));
}

/** @param mayWrite by a token that GitHub gives no permission of, as it is no user's */
export function mapRepositoriesAndIssues(
  { viewer, assigned }: GithubRepositoriesAndIssues,
  mayWrite = false,
): Omit<ProviderWork, 'changeRequests' | 'gaps'> {
  return {
    recentRepositories: viewer.recent.nodes.map(toActivity),
    probedRepositories: viewer.probe.nodes.flatMap((node) => toProbed(node, mayWrite)),
    issues: assigned.nodes.map(toItem),
    truncated: assigned.pageInfo.hasNextPage,
  };
}

export function mapAccount({ id, login, avatar_url, company, name, email }: GithubAccount): ProviderUser {
  return { id: String(id), login, avatarUrl: avatar_url ?? '', company, name, email };
}

function toChangeRequest(pull: GithubPullRequest, rechecked: ReadonlyMap<string, string>): ChangeRequest {
  return {
    ...toItem(pull),
    draft: pull.isDraft,
    conflicts: toConflicts(rechecked.get(pull.id ?? '') ?? pull.mergeable),
    failingChecks: toFailingChecks(pull),
    unresolvedComments: toUnresolvedComments(pull),
  };
}

function toItem({ repository, number, title, updatedAt }: GithubItem): AssignedIssue {
  return { repository: toActivity(repository), number, title, updatedAt };
}

function toActivity({
  nameWithOwner,
  pushedAt,
  isArchived,
  isDisabled,
}: GithubRepository): RepositoryActivity {
  return { name: nameWithOwner, activeAt: pushedAt, usable: !isArchived && !isDisabled };
}

export function toConflicts(mergeable: string | null): Signal {
  switch (mergeable) {
    case 'CONFLICTING':
      return 'yes';
    case 'MERGEABLE':
      return 'no';
    default:
      return 'unknown';
  }
}

/** Checks and statuses of the last commit together; no rollup means that there are none. */
function toFailingChecks({ commits }: GithubPullRequest): Signal {
  if (commits.nodes === null) {
    return 'unknown';
  }
  const state = commits.nodes.at(-1)?.commit.statusCheckRollup.state ?? '';
  return FAILING_STATES.includes(state) ? 'yes' : 'no';
}

/** Only the newest threads are read; older ones count as resolved. */
function toUnresolvedComments({ reviewThreads, latestOpinionatedReviews }: GithubPullRequest): Signal {
  const isOpen = reviewThreads.nodes?.some(({ isResolved }) => !isResolved) ?? false;
  const wantsChanges = latestOpinionatedReviews.nodes.some(({ state }) => state === 'CHANGES_REQUESTED');
  if (isOpen || wantsChanges) {
    return 'yes';
  }
  return reviewThreads.nodes === null ? 'unknown' : 'no';
}

/** Skips a repository with unreadable files: missing knowledge is no reason to suggest anything. */
function toProbed(repository: GithubProbedRepository, isGiven: boolean): ProbedRepository[] {
  const { isEmpty, isFork, isMirror, root, microagents, skills, viewerPermission } = repository;
  if (!isEmpty && root.entries === null) {
    return [];
  }
  const activity = toActivity(repository);
  const mayWrite = isGiven || WRITING_PERMISSIONS.includes(viewerPermission ?? '');
  return [
    {
      ...activity,
      writable: activity.usable && !isEmpty && !isFork && !isMirror && mayWrite,
      hasAgentInstructions: hasAgentInstructions({
        repository: activity.name,
        rootEntries: entryNames(root),
        microagents: entryNames(microagents),
        skills: entryNames(skills),
      }),
    },
  ];
}

function entryNames({ entries }: GithubTree): string[] {
  return (entries ?? []).map(({ name }) => name);
}

export function toFoundRepository(listed: GithubListedRepository): FoundRepository {
  return {
    id: listed.id,
    name: listed.full_name,
    isPublic: !listed.private,
    stars: listed.stargazers_count,
    activeAt: listed.pushed_at,
    ownerType: listed.owner.type === 'Organization' ? 'organization' : 'user',
    defaultBranch: listed.default_branch,
  };
}

/** The REST list has no times. */
export function toListedBranch({ name, commit, protected: isProtected }: GithubListedBranch): FoundBranch {
  return { name, commit: commit.sha, isProtected, committedAt: null };
}

export function toFoundBranch({ name, target, branchProtectionRule }: GithubFoundBranch): FoundBranch {
  return { name, commit: target.oid, isProtected: branchProtectionRule, committedAt: target.committedDate };
}

/** Searches names with the part, of the owner or else of the user and organisations. Forks only on request. */
export function repositorySearch(
  { owner, part }: { owner: string | null; part: string },
  organizations: string[],
): string {
  const owners =
    owner === null ? ['user:@me', ...organizations.map((login) => `org:${login}`)] : [`user:${owner}`];
  return [part, 'in:name', 'fork:true', ...owners].filter((word) => word !== '').join(' ');
}

export function toOpenedPullRequest(pull: GithubRestPullRequest): OpenedChangeRequest | null {
  return toOpenedChangeRequest(pull.number, pull.html_url);
}

/** What GitHub says in a word of its own about the branches of a pull request. */
const BRANCH_REASONS: ReadonlyMap<string, string> = new Map([
  ['head: invalid', 'the branch with the changes is not on the server (head: invalid)'],
  ['base: invalid', 'the branch that they shall go into is not on the server (base: invalid)'],
]);

/** See https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api. */
export function githubReasons({ message, errors }: GithubRefusal): string[] {
  const details = errors
    .map((error) => {
      if (typeof error === 'string') {
        return error;
      }
      const detail = `${error.field}: ${error.code}`;
      return (
        error.message ??
        (error.field !== null && error.code !== null ? (BRANCH_REASONS.get(detail) ?? detail) : null)
      );
    })
    .filter((detail) => detail !== null);
  return details.length > 0 || message === null ? details : [message];
}

// GitHub uses both names for an exhausted limit; the resources of one query are another limit
// (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api).
const TYPE_CODES: ReadonlyMap<string, ProviderErrorCode> = new Map([
  ['RATE_LIMITED', 'rate_limited'],
  ['RATE_LIMIT', 'rate_limited'],
  ['INSUFFICIENT_SCOPES', 'insufficient_scope'],
  ['RESOURCE_LIMITS_EXCEEDED', 'query_too_large'],
  ['MAX_NODE_LIMIT_EXCEEDED', 'query_too_large'],
]);

/** Codes for errors without a known type; the server does not translate the text. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/rate limit/i, 'rate_limited'],
  [/resource limits\b.{0,200}\bexceeded/i, 'query_too_large'],
  [/resource not accessible/i, 'insufficient_scope'],
];

/**
 * Returns null for NOT_FOUND, which only says that something is gone (https://docs.github.com/en/graphql/guides). An unknown
 * field is `unsupported`; anything unrecognised is `unavailable`.
 */
export function mapGraphqlError(error: GithubGraphqlError): ProviderErrorCode | null {
  if (error.extensions.saml_failure) {
    return 'sso_required';
  }
  if (isUnknownToServer(error)) {
    return 'unsupported';
  }
  if (error.type === 'NOT_FOUND') {
    return null;
  }
  if (error.type === 'FORBIDDEN') {
    return refusalCode(new Headers(), error.message);
  }
  return (
    TYPE_CODES.get(error.type ?? '') ??
    MESSAGE_CODES.find(([pattern]) => pattern.test(error.message ?? ''))?.[1] ??
    'unavailable'
  );
}

/** Why parts of a GraphQL response are missing, with GitHub's reasons. */
export function mapGraphqlErrors(errors: readonly GithubGraphqlError[], token: string): GapLog {
  const log = new GapLog();
  for (const error of errors) {
    const code = mapGraphqlError(error);
    if (code !== null) {
      log.note(new GitProviderError(code, { said: providerReason([error.message ?? ''], token) }));
    }
  }
  return log;
}

/** Counts the lists missing from a query that was too large; those of all elements of a list are one. */
export function missingParts(errors: readonly GithubGraphqlError[]): number {
  const tooLarge = errors.filter((error) => mapGraphqlError(error) === 'query_too_large');
  return new Set(tooLarge.map(({ path }) => path.filter((step) => typeof step === 'string').join('.'))).size;
}

/** Whether the server is too old for a field or argument in the document. */
export function lacksFields(errors: readonly GithubGraphqlError[]): boolean {
  return errors.some(isUnknownToServer);
}

function isUnknownToServer({ extensions: { code } }: GithubGraphqlError): boolean {
  return code === 'undefinedField' || code === 'argumentNotAccepted';
}

/** See https://docs.github.com/en/rest. */
export function toApiGuide(apiUrl: string, name: string, number: number): ApiGuide {
  const repository = `${apiUrl}/repos/${name}`;
  return {
    apiUrl,
    noun: 'pull request',
    change: `#${number}`,
    changeUrl: `${repository}/pulls/${number}`,
    checks:
      `${repository}/commits/{sha}/check-runs and ${repository}/commits/{sha}/status with the sha of its last ` +
      `commit; the log of a job is at ${repository}/actions/jobs/{id}/logs`,
    comments:
      `${repository}/pulls/${number}/comments, ${repository}/pulls/${number}/reviews and ` +
      `${repository}/issues/${number}/comments`,
    issueUrl: `${repository}/issues/${number}`,
    authorization: 'bearer',
  };
}
