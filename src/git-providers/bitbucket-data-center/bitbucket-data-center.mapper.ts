import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  NewChangeRequest,
  OpenedChangeRequest,
  ProviderUser,
  RepositoryActivity,
  Signal,
} from '../git-provider.js';

/** A pull request as the dashboard tells it: everything but its builds. */
export interface DataCenterPullRequest {
  repository: RepositoryActivity;
  number: number;
  title: string;
  /** Epoch milliseconds. */
  updatedAt: number;
  draft: boolean;
  conflicts: Signal;
  unresolvedComments: Signal;
  /** Newest commit of the source branch, 40 hex digits; null when missing. */
  commit: string | null;
}

/** A recently used repository the user may write to. */
export interface DataCenterRepository {
  activity: RepositoryActivity;
  fork: boolean;
}

/** A folder of a repository. */
export interface DataCenterFolder {
  names: string[];
  complete: boolean;
}

/** One element of `/dashboard/pull-requests`; null when it lacks what a task needs. */
export function toPullRequest(value: unknown): DataCenterPullRequest | null {
  const repository = toRepository(jsonAt(value, 'toRef', 'repository'));
  const number = jsonNumber(value, 'id');
  const title = jsonText(value, 'title');
  const updatedAt = jsonNumber(value, 'updatedDate');
  if (repository === null || number === null || title === null || updatedAt === null) {
    return null;
  }
  return {
    repository: repository.activity,
    number,
    title,
    updatedAt,
    // Older servers know no drafts.
    draft: jsonAt(value, 'draft') === true,
    conflicts: toConflicts(value),
    unresolvedComments: toUnresolvedComments(value),
    commit: jsonText(value, 'fromRef', 'latestCommit'),
  };
}

/** One repository; null when it has no key or slug fit for an address. Personal projects have a key such as `~jane`. */
export function toRepository(value: unknown): DataCenterRepository | null {
  const project = jsonText(value, 'project', 'key') ?? '';
  const slug = jsonText(value, 'slug') ?? '';
  if (!/^~?[\w.-]*\w[\w.-]*$/.test(project) || !/^[\w.-]*\w[\w.-]*$/.test(slug)) {
    return null;
  }
  return {
    // The server tells no time of a push; archived repositories exist since version 8.
    activity: { name: `${project}/${slug}`, activeAt: null, usable: jsonAt(value, 'archived') !== true },
    fork: jsonText(value, 'origin', 'slug') !== null,
  };
}

/** Failing builds of a commit out of `/build-status/latest/commits/stats`, which leaves out commits without builds. */
export function toFailingChecks(stats: unknown, commit: string): Signal {
  return (jsonNumber(stats, commit, 'failed') ?? 0) > 0 ? 'yes' : 'no';
}

/** `/browse` of a folder. */
export function toFolder(value: unknown): DataCenterFolder {
  const names = jsonList(value, 'children', 'values').map((child) => jsonText(child, 'path', 'toString'));
  return {
    names: names.filter((name) => name !== null),
    complete: jsonAt(value, 'children', 'isLastPage') !== false,
  };
}

/**
 * The slug of a user in addresses: the name in lower case, with `_` for what is no letter, digit, dot, dash or
 * underscore (`jane@example.com` is `jane_example.com`).
 */
export function toUserSlug(userName: string): string {
  return userName.toLowerCase().replace(/[^a-z0-9._-]/g, '_');
}

/**
 * `/users/{slug}`; null without an account.
 *
 * @param serverUrl Address that a relative avatar belongs to
 */
export function toProviderUser(value: unknown, serverUrl: string): ProviderUser | null {
  const id = jsonNumber(value, 'id');
  const login = jsonText(value, 'name');
  if (id === null || login === null) {
    return null;
  }
  return {
    id: String(id),
    login,
    avatarUrl: toAvatarUrl(jsonText(value, 'avatarUrl'), serverUrl),
    company: null,
    name: jsonText(value, 'displayName'),
    email: jsonText(value, 'emailAddress'),
  };
}

/** Uploaded pictures have an address relative to the server's host, with its context path. */
function toAvatarUrl(address: string | null, serverUrl: string): string {
  return address !== null && URL.canParse(address, serverUrl) ? new URL(address, serverUrl).href : '';
}

/**
 * The server tries merges in the background and leaves the result out until it has one; asking for it would cost a
 * request per pull request, so it stays unknown.
 */
function toConflicts(value: unknown): Signal {
  switch (jsonText(value, 'properties', 'mergeResult', 'outcome')) {
    case 'CONFLICTED':
      return 'yes';
    case 'CLEAN':
      return 'no';
    default:
      return 'unknown';
  }
}

function toUnresolvedComments(value: unknown): Signal {
  const needsWork = jsonList(value, 'reviewers').some(
    (reviewer) => jsonText(reviewer, 'status') === 'NEEDS_WORK',
  );
  return needsWork || (jsonNumber(value, 'properties', 'openTaskCount') ?? 0) > 0 ? 'yes' : 'no';
}

/** A project's key and a repository's slug. */
export interface DataCenterAddress {
  project: string;
  slug: string;
}

/** The body of the request that opens a pull request. Older servers know no drafts, so only a draft says so. */
export function newPullRequest(
  address: DataCenterAddress,
  request: NewChangeRequest,
  targetBranch: string,
): Record<string, unknown> {
  const { sourceBranch, title, body, draft } = request;
  return {
    title,
    description: body,
    fromRef: refOf(address, sourceBranch),
    toRef: refOf(address, targetBranch),
    ...(draft && { draft: true }),
  };
}

/** Full name of a branch. */
export function branchRef(branch: string): string {
  return `refs/heads/${branch}`;
}

/** Whether a pull request goes to that branch of that repository: those of one source branch are listed together. */
export function goesTo(value: unknown, address: DataCenterAddress, targetBranch: string): boolean {
  return (
    jsonText(value, 'toRef', 'id') === branchRef(targetBranch) &&
    jsonText(value, 'toRef', 'repository', 'slug')?.toLowerCase() === address.slug.toLowerCase() &&
    jsonText(value, 'toRef', 'repository', 'project', 'key')?.toLowerCase() === address.project.toLowerCase()
  );
}

/** One pull request; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(
    jsonNumber(value, 'id'),
    jsonText(jsonList(value, 'links', 'self')[0], 'href'),
  );
}

/** Name of a branch resource such as the default branch, `main` or `release/1`. */
export function toBranchName(value: unknown): string | null {
  const id = jsonText(value, 'id');
  return jsonText(value, 'displayId') ?? id?.replace(/^refs\/heads\//, '') ?? null;
}

/** Why the server refused: the messages of its errors, with the member that each is about. */
export function dataCenterReasons(body: unknown): string[] {
  return jsonList(body, 'errors')
    .map((error) => {
      const message = jsonText(error, 'message');
      const context = jsonAt(error, 'context');
      return message !== null && typeof context === 'string' ? `${context}: ${message}` : message;
    })
    .filter((text) => text !== null);
}

function refOf({ project, slug }: DataCenterAddress, branch: string): Record<string, unknown> {
  return { id: branchRef(branch), repository: { slug, project: { key: project } } };
}
