import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { hasAgentInstructions } from '../agent-instructions.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  AssignedIssue,
  ChangeRequest,
  NewChangeRequest,
  OpenedChangeRequest,
  ProbedRepository,
  ProviderUser,
  RepositoryActivity,
  Signal,
} from '../git-provider.js';

/** What the GraphQL half tells. */
export interface GitlabGraphqlWork {
  changeRequests: ChangeRequest[];
  recentRepositories: RepositoryActivity[];
  probedRepositories: ProbedRepository[];
  truncated: boolean;
}

/** Issue types that are work for a developer; requirements, test cases and objectives are not. */
const ISSUE_TYPES: readonly string[] = ['issue', 'incident', 'task'];

/** Translates `data` of the suggested-tasks document. An element that lacks what it needs is left out alone. */
export function mapGraphqlWork(data: unknown): GitlabGraphqlWork {
  const recentRepositories = jsonList(data, 'recent', 'nodes').flatMap(mapRepository);
  const activity = new Map(recentRepositories.map((repository) => [repository.name, repository.activeAt]));
  return {
    changeRequests: jsonList(data, 'currentUser', 'authoredMergeRequests', 'nodes').flatMap(mapMergeRequest),
    recentRepositories,
    probedRepositories: jsonList(data, 'probe', 'nodes').flatMap((node) => mapProbe(node, activity)),
    truncated: jsonAt(data, 'currentUser', 'authoredMergeRequests', 'pageInfo', 'hasNextPage') === true,
  };
}

/**
 * Translates the answer of `GET /issues`. It names an issue's project but not the project's activity. Where the
 * GraphQL half did not tell it either, the newest of the project's issues stands for it: an issue's update is an
 * activity, so this is a lower bound and never ranks the project too high. (GitLab lists no issues of archived projects.)
 */
export function mapIssues(
  body: readonly unknown[],
  known: ReadonlyMap<string, RepositoryActivity>,
): AssignedIssue[] {
  const found = body.flatMap(readIssue);
  const newest = new Map<string, number>();
  for (const { name, updatedAt } of found) {
    newest.set(name, Math.max(updatedAt, newest.get(name) ?? updatedAt));
  }
  return found.map(({ name, ...issue }) => ({
    ...issue,
    repository: known.get(name) ?? { name, activeAt: newest.get(name) ?? issue.updatedAt, usable: true },
  }));
}

/** Translates `GET /user`; null when it is no account. */
export function mapUser(body: unknown): ProviderUser | null {
  const id = jsonNumber(body, 'id');
  const login = jsonText(body, 'username');
  if (id === null || login === null) {
    return null;
  }
  return {
    id: String(id),
    login,
    avatarUrl: jsonText(body, 'avatar_url') ?? '',
    company: jsonText(body, 'organization'),
    name: jsonText(body, 'name'),
    email: jsonText(body, 'email'),
  };
}

/** `conflicts` alone repeats the last result while GitLab checks again, so only a settled status counts. */
export function mapConflicts(mergeStatus: unknown, conflicts: unknown): Signal {
  switch (mergeStatus) {
    case 'CANNOT_BE_MERGED':
      return conflicts === true ? 'yes' : 'no';
    case 'CAN_BE_MERGED':
      return 'no';
    default:
      return 'unknown';
  }
}

function mapRepository(node: unknown): RepositoryActivity[] {
  const name = jsonText(node, 'fullPath');
  return name === null
    ? []
    : [{ name, activeAt: timeAt(node, 'lastActivityAt'), usable: jsonAt(node, 'archived') !== true }];
}

function mapMergeRequest(node: unknown): ChangeRequest[] {
  const [repository] = mapRepository(jsonAt(node, 'project'));
  const number = Number(jsonText(node, 'iid') ?? Number.NaN);
  const title = jsonText(node, 'title');
  const updatedAt = timeAt(node, 'updatedAt');
  if (!repository || !isNumber(number) || title === null || updatedAt === null) {
    return [];
  }
  return [
    {
      repository,
      number,
      title,
      updatedAt,
      draft: jsonAt(node, 'draft') === true,
      conflicts: mapConflicts(jsonAt(node, 'mergeStatusEnum'), jsonAt(node, 'conflicts')),
      // Null without a pipeline, and also where the user may not see pipelines.
      failingChecks: jsonText(node, 'headPipeline', 'status') === 'FAILED' ? 'yes' : 'no',
      unresolvedComments: mapDiscussions(node),
    },
  ];
}

/** Counters of current servers, the discussions themselves from older ones. */
function mapDiscussions(node: unknown): Signal {
  const resolvable = jsonNumber(node, 'resolvableDiscussionsCount');
  const resolved = jsonNumber(node, 'resolvedDiscussionsCount');
  if (resolvable !== null && resolved !== null) {
    return resolvable > resolved ? 'yes' : 'no';
  }
  if (!Array.isArray(jsonAt(node, 'discussions', 'nodes'))) {
    return 'unknown';
  }
  return jsonList(node, 'discussions', 'nodes').some(isOpenDiscussion) ? 'yes' : 'no';
}

function isOpenDiscussion(discussion: unknown): boolean {
  return jsonAt(discussion, 'resolvable') === true && jsonAt(discussion, 'resolved') === false;
}

/**
 * A repository whose root was not readable is left out: unknown is no reason to suggest anything. GitLab's
 * GraphQL does not tell forks and mirrors apart, so they count as ordinary repositories.
 */
function mapProbe(node: unknown, activity: ReadonlyMap<string, number | null>): ProbedRepository[] {
  const [repository] = mapRepository(node);
  const empty = jsonAt(node, 'repository', 'empty');
  const root = jsonAt(node, 'repository', 'root');
  if (!repository || typeof empty !== 'boolean' || (!empty && typeof jsonAt(root, 'blobs') !== 'object')) {
    return [];
  }
  return [
    {
      ...repository,
      activeAt: activity.get(repository.name) ?? null,
      writable: repository.usable && !empty && jsonAt(node, 'userPermissions', 'pushCode') === true,
      hasAgentInstructions: hasAgentInstructions({
        repository: repository.name,
        rootEntries: [...fileNames(root, 'blobs'), ...fileNames(root, 'trees')],
        microagents: fileNames(jsonAt(node, 'repository', 'micro'), 'blobs'),
        skills: fileNames(jsonAt(node, 'repository', 'skills'), 'blobs'),
      }),
    },
  ];
}

function fileNames(tree: unknown, kind: 'blobs' | 'trees'): string[] {
  return jsonList(tree, kind, 'nodes').flatMap((node) => jsonText(node, 'path')?.split('/').at(-1) ?? []);
}

function readIssue(element: unknown): { name: string; number: number; title: string; updatedAt: number }[] {
  const number = jsonNumber(element, 'iid');
  const reference = jsonText(element, 'references', 'full');
  const title = jsonText(element, 'title');
  const updatedAt = timeAt(element, 'updated_at');
  // Servers of before issue types send none.
  const type = jsonText(element, 'issue_type') ?? 'issue';
  const name = reference?.endsWith(`#${number}`) ? reference.slice(0, -`#${number}`.length) : '';
  const isComplete =
    number !== null && isNumber(number) && title !== null && updatedAt !== null && name !== '';
  return isComplete && ISSUE_TYPES.includes(type) ? [{ name, number, title, updatedAt }] : [];
}

function isNumber(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

function timeAt(node: unknown, key: string): number | null {
  const time = Date.parse(jsonText(node, key) ?? '');
  return Number.isNaN(time) ? null : time;
}

/** A title that makes a draft (https://docs.gitlab.com/user/project/merge_requests/drafts/). */
const DRAFT_TITLE = /^\s*(draft:|\[draft\]|\(draft\))/i;

/** The body of the request that opens a merge request. */
export function newMergeRequest(request: NewChangeRequest, targetBranch: string): Record<string, string> {
  const { sourceBranch, title, body, draft } = request;
  return {
    source_branch: sourceBranch,
    target_branch: targetBranch,
    title: draft && !DRAFT_TITLE.test(title) ? `Draft: ${title}` : title,
    description: body,
  };
}

/** One merge request of the REST API; null when it lacks its number or page. */
export function toOpenedMergeRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'iid'), jsonText(value, 'web_url'));
}

/** Whether both branches are in the project itself: those of forks are listed too, and may have the same name. */
export function isWithinProject(value: unknown): boolean {
  const source = jsonNumber(value, 'source_project_id');
  return source !== null && source === jsonNumber(value, 'target_project_id');
}

/**
 * Why GitLab refused: `message` is a text, a list, or lists by attribute; some answers have `error` instead
 * (https://docs.gitlab.com/api/rest/troubleshooting/).
 */
export function gitlabReasons(body: unknown): string[] {
  const texts = [...textsOf(jsonAt(body, 'message')), ...textsOf(jsonAt(body, 'error_description'))];
  return texts.length > 0 ? texts : textsOf(jsonAt(body, 'error'));
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') {
    return [value];
  }
  if (Array.isArray(value)) {
    return value.flatMap(textsOf);
  }
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, inner]) =>
        textsOf(inner).map((text) => (name === 'base' ? text : `${name}: ${text}`)),
      )
    : [];
}
