import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  ApiGuide,
  ChangeRequest,
  GitCredential,
  NewChangeRequest,
  OpenedChangeRequest,
  ProviderUser,
  Signal,
} from '../git-provider.js';
import type { FoundBranch, FoundRepository, ListRange, RepositoryQuery } from '../repository-lists.js';
import {
  type BitbucketAccount,
  type BitbucketBranch,
  type BitbucketComment,
  type BitbucketConflicts,
  type BitbucketEntry,
  type BitbucketFoundRepository,
  type BitbucketListedPullRequest,
  type BitbucketListedRepository,
  type BitbucketOpenedPullRequest,
  type BitbucketRefusal,
  type BitbucketStatus,
} from './bitbucket.schema.js';

export interface BitbucketPullRequest {
  /** `workspace/slug` of the destination. */
  repository: string;
  id: number;
  title: string;
  /** Epoch milliseconds. */
  updatedAt: number;
  draft: boolean;
  openTasks: number;
  comments: number;
  changesRequested: boolean;
  /** Both tips in one text; equal texts have the same conflicts. Null for a deleted branch. */
  commits: string | null;
}

export interface BitbucketRepository {
  name: string;
  /** Epoch milliseconds. */
  activeAt: number;
  fork: boolean;
  empty: boolean;
}

export type BitbucketSignals = Pick<ChangeRequest, 'conflicts' | 'failingChecks' | 'unresolvedComments'>;

export function toPullRequest(listed: BitbucketListedPullRequest): BitbucketPullRequest {
  const source = listed.source.commit.hash;
  const destination = listed.destination.commit.hash;
  return {
    repository: listed.destination.repository.full_name,
    id: listed.id,
    title: listed.title,
    updatedAt: listed.updated_on,
    draft: listed.draft,
    openTasks: listed.task_count ?? 0,
    comments: listed.comment_count ?? 0,
    changesRequested: listed.participants.some(({ state }) => state === 'changes_requested'),
    commits: source === null || destination === null ? null : `${source}..${destination}`,
  };
}

export function toRepository(listed: BitbucketListedRepository): BitbucketRepository {
  return {
    name: listed.full_name,
    activeAt: listed.updated_on,
    fork: listed.parent.full_name !== null,
    // A repository without commits has no main branch.
    empty: listed.mainbranch.name === null,
  };
}

/** Adds signals, in the order of `pulls`, and the known activity of repositories. */
export function toChangeRequests(
  pulls: readonly BitbucketPullRequest[],
  signals: readonly BitbucketSignals[],
  repositories: readonly BitbucketRepository[],
): ChangeRequest[] {
  const activity = new Map(repositories.map(({ name, activeAt }) => [name, activeAt]));
  return pulls.flatMap(({ repository, id, title, updatedAt, draft }, index) => {
    const found = signals[index];
    return found
      ? [
          {
            repository: { name: repository, activeAt: activity.get(repository) ?? null, usable: true },
            number: id,
            title,
            updatedAt,
            draft,
            ...found,
          },
        ]
      : [];
  });
}

export function toFailingChecks(statuses: readonly BitbucketStatus[]): Signal {
  return newestRuns(statuses).some(({ state }) => state === 'FAILED') ? 'yes' : 'no';
}

/** A check may be listed once per run: its newest run counts, of the same moment the last one listed. */
export function newestRuns<Run extends Pick<BitbucketStatus, 'key' | 'updated_on'>>(
  runs: readonly Run[],
): Run[] {
  const newest = new Map<string, Run>();
  for (const [index, run] of runs.entries()) {
    const key = run.key ?? `#${index}`;
    if ((newest.get(key)?.updated_on ?? 0) <= (run.updated_on ?? 0)) {
      newest.set(key, run);
    }
  }
  return [...newest.values()];
}

/** Whether a comment waits for the author: inline, at the root, published, unresolved, by another user. */
export function isUnresolvedThread(comment: BitbucketComment, userUuid: string): boolean {
  const isReviewThread = comment.inline && !comment.parent && !comment.deleted && !comment.pending;
  return isReviewThread && !comment.resolution && comment.user.uuid !== userUuid;
}

export function toConflicts({ values }: BitbucketConflicts): Signal {
  if (values === null) {
    return 'unknown';
  }
  return values.length > 0 ? 'yes' : 'no';
}

export function toEntryNames(entries: readonly BitbucketEntry[]): string[] {
  return entries.map(({ path }) => path.replace(/\/$/, '').split('/').at(-1) ?? '');
}

/** The account, or null. The e-mail address would need another request and scope. */
export function toProviderUser(account: BitbucketAccount): ProviderUser | null {
  const id = account.account_id ?? account.uuid;
  const login = account.username ?? account.nickname;
  if (id === null || login === null) {
    return null;
  }
  return {
    id,
    login,
    avatarUrl: account.links.avatar.href ?? '',
    company: null,
    name: account.display_name,
    email: null,
  };
}

export function newPullRequest(request: NewChangeRequest, targetBranch: string): Record<string, unknown> {
  const { sourceBranch, fork, title, body, draft } = request;
  const repository = fork !== undefined && { repository: { full_name: fork } };
  return {
    title,
    description: body,
    source: { branch: { name: sourceBranch }, ...repository },
    destination: { branch: { name: targetBranch } },
    draft,
  };
}

/** A filter by branches: https://developer.atlassian.com/cloud/bitbucket/rest/intro/#filtering. */
export function openBetween(repository: string, sourceBranch: string, targetBranch: string): string {
  return [
    'state = "OPEN"',
    `source.repository.full_name = ${quoted(repository)}`,
    `source.branch.name = ${quoted(sourceBranch)}`,
    `destination.branch.name = ${quoted(targetBranch)}`,
  ].join(' AND ');
}

export function toOpenedPullRequest({ id, links }: BitbucketOpenedPullRequest): OpenedChangeRequest | null {
  return toOpenedChangeRequest(id, links.html.href);
}

export function bitbucketReasons({ error }: BitbucketRefusal): string[] {
  const byField = Object.entries(error.fields).flatMap(([name, texts]) =>
    [texts].flat().map((text) => (typeof text === 'string' ? `${name}: ${text}` : null)),
  );
  return [error.message, error.detail, ...byField].filter((text) => text !== null);
}

/**
 * The user name depends on the kind of token: API tokens, stored as `email:api_token`
 * (https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/), or access and OAuth tokens
 * (https://support.atlassian.com/bitbucket-cloud/docs/using-access-tokens/).
 */
export function bitbucketGitCredential(token: string): GitCredential {
  const colon = token.indexOf(':');
  return colon < 0
    ? { username: 'x-token-auth', password: token }
    : { username: 'x-bitbucket-api-token-auth', password: token.slice(colon + 1) };
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The query for repositories, which Bitbucket can order by neither stars nor forks. */
export function repositoriesQuery(range: ListRange, text: string | null, { sort }: RepositoryQuery): string {
  return pageQuery(range, text, sort?.endsWith('asc') ? 'updated_on' : '-updated_on');
}

export function branchesQuery(range: ListRange, text: string | null): string {
  return pageQuery(range, text, '-target.date');
}

function pageQuery({ position, limit }: ListRange, text: string | null, sort: string): string {
  const query = new URLSearchParams({ pagelen: String(limit), page: String(position), sort });
  if (text !== null) {
    query.set('q', `name ~ ${quoted(text)}`);
  }
  return query.toString();
}

export function toFoundRepository(found: BitbucketFoundRepository): FoundRepository {
  return {
    id: found.uuid,
    name: found.full_name,
    isPublic: !found.is_private,
    stars: null,
    activeAt: found.updated_on,
    ownerType: found.owner.type === 'user' ? 'user' : 'organization',
    defaultBranch: found.mainbranch.name,
  };
}

/** Branch restrictions are another resource, which only administrators may read. */
export function toFoundBranch({ name, target }: BitbucketBranch): FoundBranch {
  return { name, commit: target.hash, isProtected: false, committedAt: target.date };
}

/** See https://developer.atlassian.com/cloud/bitbucket/rest/. */
export function toApiGuide(apiUrl: string, name: string, number: number): ApiGuide {
  const repository = `${apiUrl}/repositories/${name}`;
  return {
    apiUrl,
    noun: 'pull request',
    change: `#${number}`,
    changeUrl: `${repository}/pullrequests/${number}`,
    checks: `${repository}/pullrequests/${number}/statuses`,
    comments: `${repository}/pullrequests/${number}/comments and ${repository}/pullrequests/${number}/tasks`,
    issueUrl: `${repository}/issues/${number}`,
    authorization: 'email-and-token',
  };
}
