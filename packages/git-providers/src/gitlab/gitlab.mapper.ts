import { textHead } from '@slipway/common/well-formed-text.js';
import { hasAgentInstructions } from '../agent-instructions.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  ApiGuide,
  AssignedIssue,
  ChangeRequest,
  NewChangeRequest,
  OpenedChangeRequest,
  ProbedRepository,
  ProviderUser,
  ProviderWork,
  RepositoryActivity,
  Signal,
} from '../git-provider.js';
import type { FoundBranch, FoundRepository, RepositoryQuery } from '../repository-lists.js';
import type {
  GitlabAccount,
  GitlabEntries,
  GitlabIssue,
  GitlabListedBranch,
  GitlabListedProject,
  GitlabMergeRequest,
  GitlabProbedProject,
  GitlabProject,
  GitlabRefusal,
  GitlabRestMergeRequest,
  GitlabWork,
} from './gitlab.schema.js';

export type GitlabGraphqlWork = Omit<ProviderWork, 'issues' | 'gaps'>;

/** Requirements, test cases and objectives are no work for a developer. */
const ISSUE_TYPES: readonly string[] = ['issue', 'incident', 'task'];

/** See https://docs.gitlab.com/user/project/merge_requests/drafts/. */
const DRAFT_TITLE = /^\s*(draft:|\[draft\]|\(draft\))/i;

/** See https://github.com/dependabot/dependabot-core/issues/12157. */
const MAX_TITLE = 255;

export function mapGraphqlWork({ currentUser, recent, probe }: GitlabWork): GitlabGraphqlWork {
  const mergeRequests = currentUser.authoredMergeRequests;
  const recentRepositories = recent?.nodes.map(toActivity) ?? [];
  const activity = new Map(recentRepositories.map(({ name, activeAt }) => [name, activeAt]));
  return {
    changeRequests: mergeRequests?.nodes.map(toChangeRequest) ?? [],
    recentRepositories,
    probedRepositories: probe.nodes.flatMap((project) => toProbed(project, activity)),
    truncated: mergeRequests?.pageInfo.hasNextPage ?? false,
  };
}

/**
 * Issues tell no project activity. If GraphQL did not either, the newest issue stands for it: a lower bound, which
 * never ranks the project too high. GitLab lists no issues of archived projects.
 */
export function mapIssues(
  issues: readonly GitlabIssue[],
  known: ReadonlyMap<string, RepositoryActivity>,
): AssignedIssue[] {
  const found = issues.flatMap(readIssue);
  const newest = new Map<string, number>();
  for (const { name, updatedAt } of found) {
    newest.set(name, Math.max(updatedAt, newest.get(name) ?? updatedAt));
  }
  return found.map(({ name, ...issue }) => ({
    ...issue,
    repository: known.get(name) ?? { name, activeAt: newest.get(name) ?? issue.updatedAt, usable: true },
  }));
}

export function mapAccount(account: GitlabAccount): ProviderUser {
  const { id, username, avatar_url, organization, name, email } = account;
  return { id: String(id), login: username, avatarUrl: avatar_url ?? '', company: organization, name, email };
}

/** `conflicts` alone repeats the last result while GitLab checks again, so only a settled status counts. */
export function mapConflicts(mergeStatus: string | null, conflicts: boolean): Signal {
  switch (mergeStatus) {
    case 'CANNOT_BE_MERGED':
      return conflicts ? 'yes' : 'no';
    case 'CAN_BE_MERGED':
      return 'no';
    default:
      return 'unknown';
  }
}

/** Since a branch has moved: GraphQL would tell so for ever. */
export function isUnchecked({ mergeStatusEnum }: Pick<GitlabMergeRequest, 'mergeStatusEnum'>): boolean {
  return mergeStatusEnum === 'UNCHECKED' || mergeStatusEnum === 'CANNOT_BE_MERGED_RECHECK';
}

export function newMergeRequest(
  request: NewChangeRequest,
  targetBranch: string,
  target: number | null = null,
): Record<string, string | number> {
  const { sourceBranch, title, body, draft } = request;
  return {
    ...(target !== null && { target_project_id: target }),
    source_branch: sourceBranch,
    target_branch: targetBranch,
    title: textHead(draft && !DRAFT_TITLE.test(title) ? `Draft: ${title}` : title, MAX_TITLE),
    description: body,
  };
}

export function toOpenedMergeRequest(mergeRequest: GitlabRestMergeRequest): OpenedChangeRequest | null {
  return toOpenedChangeRequest(mergeRequest.iid, mergeRequest.web_url);
}

/** GitLab lists the requests from all forks, whose branches may have the same name. `fork`: null for the project itself. */
export function comesFrom(fork: number | null, mergeRequest: GitlabRestMergeRequest): boolean {
  const { source_project_id: source, target_project_id: target } = mergeRequest;
  return source !== null && source === (fork ?? target);
}

/** Reads `message` or `error` in several forms (https://docs.gitlab.com/api/rest/troubleshooting/). */
export function gitlabReasons({ message, error, error_description }: GitlabRefusal): string[] {
  const texts = [...textsOf(message), ...textsOf(error_description)];
  return texts.length > 0 ? texts : textsOf(error);
}

function toActivity({ fullPath, lastActivityAt, archived }: GitlabProject): RepositoryActivity {
  return { name: fullPath, activeAt: lastActivityAt, usable: !archived };
}

function toChangeRequest(mergeRequest: GitlabMergeRequest): ChangeRequest {
  const { project, iid, title, updatedAt, draft } = mergeRequest;
  return {
    repository: toActivity(project),
    number: iid,
    title,
    updatedAt,
    draft,
    conflicts: mapConflicts(mergeRequest.mergeStatusEnum, mergeRequest.conflicts),
    failingChecks: mergeRequest.headPipeline.status === 'FAILED' ? 'yes' : 'no',
    unresolvedComments: toUnresolvedComments(mergeRequest),
  };
}

/** Counters of current servers, the discussions themselves from older ones. */
function toUnresolvedComments({
  resolvableDiscussionsCount: resolvable,
  resolvedDiscussionsCount: resolved,
  discussions,
}: GitlabMergeRequest): Signal {
  if (resolvable !== null && resolved !== null) {
    return resolvable > resolved ? 'yes' : 'no';
  }
  if (discussions.nodes === null) {
    return 'unknown';
  }
  const isOpen = discussions.nodes.some((discussion) => discussion.resolvable && !discussion.resolved);
  return isOpen ? 'yes' : 'no';
}

/** Skips a project with an unreadable root. GraphQL does not tell forks and mirrors apart from others. */
function toProbed(
  project: GitlabProbedProject,
  activity: ReadonlyMap<string, number | null>,
): ProbedRepository[] {
  const { empty, root, micro, skills } = project.repository;
  if (!empty && root === null) {
    return [];
  }
  const { name, usable } = toActivity(project);
  return [
    {
      name,
      usable,
      activeAt: activity.get(name) ?? null,
      writable: usable && !empty && project.userPermissions.pushCode,
      hasAgentInstructions: hasAgentInstructions({
        repository: name,
        rootEntries: entryNames(root?.blobs),
        microagents: entryNames(micro.blobs),
        skills: entryNames(skills.blobs),
      }),
    },
  ];
}

function entryNames(entries: GitlabEntries | null | undefined): string[] {
  return (entries?.nodes ?? []).flatMap(({ path }) => path.split('/').at(-1) ?? []);
}

function readIssue({ iid, title, updated_at, issue_type, references }: GitlabIssue): {
  name: string;
  number: number;
  title: string;
  updatedAt: number;
}[] {
  const suffix = `#${iid}`;
  const name = references.full.endsWith(suffix) ? references.full.slice(0, -suffix.length) : '';
  const isWork = ISSUE_TYPES.includes(issue_type ?? 'issue');
  return name !== '' && isWork ? [{ name, number: iid, title, updatedAt: updated_at }] : [];
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

/** The query for the user's projects. A text may name groups too, as in `group/part`. */
export function projectsQuery({ text, sort, position, limit }: RepositoryQuery): string {
  const query = new URLSearchParams({
    membership: 'true',
    // GitLab cannot order the list by forks.
    order_by: sort?.startsWith('stars') ? 'star_count' : 'last_activity_at',
    sort: sort?.endsWith('asc') ? 'asc' : 'desc',
    page: String(position),
    per_page: String(limit),
    ...(text !== null && { search: text, search_namespaces: 'true' }),
  });
  return query.toString();
}

export function toFoundRepository(project: GitlabListedProject): FoundRepository {
  return {
    id: project.id,
    name: project.path_with_namespace,
    isPublic: project.visibility === 'public',
    stars: project.star_count,
    activeAt: project.last_activity_at,
    ownerType: project.namespace.kind === 'group' ? 'organization' : 'user',
    defaultBranch: project.default_branch,
  };
}

export function toFoundBranch({ name, commit, protected: isProtected }: GitlabListedBranch): FoundBranch {
  return { name, commit: commit.id, isProtected, committedAt: commit.committed_date };
}

/** See https://docs.gitlab.com/api/rest/. */
export function toApiGuide(apiUrl: string, path: string, number: number): ApiGuide {
  const project = `${apiUrl}/projects/${encodeURIComponent(path)}`;
  return {
    apiUrl,
    noun: 'merge request',
    change: `!${number}`,
    changeUrl: `${project}/merge_requests/${number}`,
    checks:
      `${project}/merge_requests/${number}/pipelines, the jobs at ${project}/pipelines/{id}/jobs and the log of ` +
      `one at ${project}/jobs/{id}/trace`,
    comments: `${project}/merge_requests/${number}/discussions`,
    issueUrl: `${project}/issues/${number}`,
    authorization: 'bearer',
  };
}
