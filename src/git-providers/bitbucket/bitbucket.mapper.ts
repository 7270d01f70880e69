import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  ChangeRequest,
  NewChangeRequest,
  OpenedChangeRequest,
  ProviderUser,
  Signal,
} from '../git-provider.js';

/** An open pull request of the user as the workspace's list tells it, before its details were asked for. */
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
  /** Both tips in one text; equal texts have the same conflicts. Null where a tip is missing (branch deleted). */
  commits: string | null;
}

/** A repository the user may write to. */
export interface BitbucketRepository {
  name: string;
  /** Epoch milliseconds. */
  activeAt: number;
  fork: boolean;
  empty: boolean;
}

export const PULL_REQUEST_FIELDS = [
  'next',
  'values.id',
  'values.title',
  'values.draft',
  'values.updated_on',
  'values.comment_count',
  'values.task_count',
  'values.source.commit.hash',
  'values.destination.commit.hash',
  'values.destination.repository.full_name',
  'values.participants.state',
].join(',');

export const REPOSITORY_FIELDS = [
  'values.full_name',
  'values.updated_on',
  'values.mainbranch.name',
  'values.parent.full_name',
].join(',');

export const STATUS_FIELDS = 'next,values.state,values.key,values.updated_on';

export const COMMENT_FIELDS = [
  'next',
  'values.id',
  'values.deleted',
  'values.pending',
  'values.parent.id',
  'values.resolution.type',
  'values.inline.path',
  'values.user.uuid',
].join(',');

export const FOLDER_FIELDS = 'next,values.path';

/** One element of `/workspaces/{workspace}/pullrequests/{user}`; null when it lacks what a task needs. */
export function toPullRequest(value: unknown): BitbucketPullRequest | null {
  const repository = toRepositoryName(jsonText(value, 'destination', 'repository', 'full_name'));
  const id = jsonNumber(value, 'id');
  const title = jsonText(value, 'title');
  const updatedAt = toInstant(value, 'updated_on');
  if (repository === null || id === null || title === null || updatedAt === null) {
    return null;
  }
  const source = jsonText(value, 'source', 'commit', 'hash');
  const destination = jsonText(value, 'destination', 'commit', 'hash');
  return {
    repository,
    id,
    title,
    updatedAt,
    draft: jsonAt(value, 'draft') === true,
    openTasks: jsonNumber(value, 'task_count') ?? 0,
    comments: jsonNumber(value, 'comment_count') ?? 0,
    changesRequested: jsonList(value, 'participants').some(
      (participant) => jsonText(participant, 'state') === 'changes_requested',
    ),
    commits: source === null || destination === null ? null : `${source}..${destination}`,
  };
}

/** One element of `/repositories/{workspace}`; null when it has no name or time. */
export function toRepository(value: unknown): BitbucketRepository | null {
  const name = toRepositoryName(jsonText(value, 'full_name'));
  const activeAt = toInstant(value, 'updated_on');
  if (name === null || activeAt === null) {
    return null;
  }
  return {
    name,
    activeAt,
    fork: jsonText(value, 'parent', 'full_name') !== null,
    // A repository without a single commit has no main branch yet.
    empty: jsonText(value, 'mainbranch', 'name') === null,
  };
}

/** Slugs out of `/user/workspaces`. */
export function toWorkspaceSlugs(values: readonly unknown[]): string[] {
  return values.map((value) => jsonText(value, 'workspace', 'slug')).filter((slug) => slug !== null);
}

/**
 * Whether a check of the source commit fails. A key (one check) may be listed once per run: only its newest run
 * counts, and among runs of the same moment the last one listed.
 */
export function toFailingChecks(statuses: readonly unknown[]): Signal {
  const newest = new Map<string, { state: string | null; at: number }>();
  for (const [index, status] of statuses.entries()) {
    const key = jsonText(status, 'key') ?? `#${index}`;
    const at = toInstant(status, 'updated_on') ?? 0;
    const known = newest.get(key);
    if (!known || at >= known.at) {
      newest.set(key, { state: jsonText(status, 'state'), at });
    }
  }
  return [...newest.values()].some(({ state }) => state === 'FAILED') ? 'yes' : 'no';
}

/**
 * Whether a comment starts a review thread that waits for the author: inline, at the root, published, not
 * resolved, by somebody else. Comments that are not inline are conversation and wait for nobody.
 */
export function isUnresolvedThread(comment: unknown, userUuid: string): boolean {
  const isMember = (key: string): boolean => (jsonAt(comment, key) ?? null) !== null;
  return (
    isMember('inline') &&
    !isMember('parent') &&
    !isMember('resolution') &&
    jsonAt(comment, 'deleted') !== true &&
    jsonAt(comment, 'pending') !== true &&
    jsonText(comment, 'user', 'uuid') !== userUuid
  );
}

/** `/pullrequests/{id}/conflicts`, a list of conflicting files; anything else tells nothing. */
export function toConflicts(body: unknown): Signal {
  if (!Array.isArray(jsonAt(body, 'values'))) {
    return 'unknown';
  }
  return jsonList(body, 'values').length > 0 ? 'yes' : 'no';
}

/** Last parts of the paths in a folder listing (`/src/{commit}/{folder}/`). */
export function toEntryNames(values: readonly unknown[]): string[] {
  return values
    .map((value) => jsonText(value, 'path'))
    .filter((path) => path !== null)
    .map((path) => path.replace(/\/$/, '').split('/').at(-1) ?? '');
}

/** `/user`; null without an account. The address is not part of it (another request, another scope). */
export function toProviderUser(value: unknown): ProviderUser | null {
  const id = jsonText(value, 'account_id') ?? jsonText(value, 'uuid');
  const login = jsonText(value, 'username') ?? jsonText(value, 'nickname');
  if (id === null || login === null) {
    return null;
  }
  return {
    id,
    login,
    avatarUrl: jsonText(value, 'links', 'avatar', 'href') ?? '',
    company: null,
    name: jsonText(value, 'display_name'),
    email: null,
  };
}

/** Names become parts of addresses: only `workspace/slug` of harmless characters passes. */
function toRepositoryName(name: string | null): string | null {
  return name !== null && /^[\w.-]*\w[\w.-]*\/[\w.-]*\w[\w.-]*$/.test(name) ? name : null;
}

function toInstant(value: unknown, key: string): number | null {
  const instant = Date.parse(jsonText(value, key) ?? '');
  return Number.isNaN(instant) ? null : instant;
}

/** Change requests with the signals of each (same order), and the activity of repositories where it is known. */
export function toChangeRequests(
  pulls: readonly BitbucketPullRequest[],
  signals: readonly Pick<ChangeRequest, 'conflicts' | 'failingChecks' | 'unresolvedComments'>[],
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

/** The body of the request that opens a pull request. */
export function newPullRequest(request: NewChangeRequest, targetBranch: string): Record<string, unknown> {
  const { sourceBranch, title, body, draft } = request;
  return {
    title,
    description: body,
    source: { branch: { name: sourceBranch } },
    destination: { branch: { name: targetBranch } },
    draft,
  };
}

/**
 * The filter for the open pull request between two branches of a repository
 * (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#filtering).
 */
export function openBetween(repository: string, sourceBranch: string, targetBranch: string): string {
  return [
    'state = "OPEN"',
    `source.repository.full_name = ${quoted(repository)}`,
    `source.branch.name = ${quoted(sourceBranch)}`,
    `destination.branch.name = ${quoted(targetBranch)}`,
  ].join(' AND ');
}

/** One pull request; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'id'), jsonText(value, 'links', 'html', 'href'));
}

/** Why Bitbucket refused: a message, sometimes a detail, and texts by field. */
export function bitbucketReasons(body: unknown): string[] {
  const fields: unknown = jsonAt(body, 'error', 'fields');
  return [
    jsonText(body, 'error', 'message'),
    jsonText(body, 'error', 'detail'),
    ...Object.entries(typeof fields === 'object' && fields !== null ? fields : {}).flatMap(
      ([name, texts]: [string, unknown]) =>
        [texts].flat().map((text) => (typeof text === 'string' ? `${name}: ${text}` : null)),
    ),
  ].filter((text) => text !== null);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
