import type { ReadFolder } from '../agent-instructions.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  ApiGuide,
  ChangeRequest,
  NewChangeRequest,
  OpenedChangeRequest,
  ProviderUser,
  RepositoryActivity,
  Signal,
} from '../git-provider.js';
import type { FoundBranch, FoundRepository } from '../repository-lists.js';
import type {
  DataCenterAccount,
  DataCenterBranch,
  DataCenterBuildStats,
  DataCenterFoundRepository,
  DataCenterListedBranch,
  DataCenterListedFolder,
  DataCenterListedPullRequest,
  DataCenterListedRepository,
  DataCenterOpenedPullRequest,
  DataCenterRefusal,
} from './bitbucket-data-center.schema.js';

export interface DataCenterPullRequest extends Omit<ChangeRequest, 'failingChecks'> {
  /** Newest commit of the source branch, 40 hex digits. */
  commit: string | null;
}

export interface DataCenterRepository {
  activity: RepositoryActivity;
  fork: boolean;
}

export interface DataCenterAddress {
  project: string;
  slug: string;
}

export function toPullRequest(listed: DataCenterListedPullRequest): DataCenterPullRequest {
  return {
    repository: toRepository(listed.toRef.repository).activity,
    number: listed.id,
    title: listed.title,
    updatedAt: listed.updatedDate,
    draft: listed.draft,
    conflicts: toConflicts(listed),
    unresolvedComments: toUnresolvedComments(listed),
    commit: listed.fromRef.latestCommit,
  };
}

/** The server has no times of pushes. */
export function toRepository(listed: DataCenterListedRepository): DataCenterRepository {
  const name = `${listed.project.key}/${listed.slug}`;
  return {
    activity: { name, activeAt: null, usable: !listed.archived },
    fork: listed.origin.slug !== null,
  };
}

export function toFailingChecks(stats: DataCenterBuildStats, commit: string): Signal {
  return (stats[commit]?.failed ?? 0) > 0 ? 'yes' : 'no';
}

export function toFolder({ children }: DataCenterListedFolder): NonNullable<ReadFolder> {
  return {
    names: children.values.map(({ path }) => path.toString),
    complete: children.isLastPage !== false,
  };
}

/** A user's slug: in lower case, with `_` for special characters: `jane@example.com` is `jane_example.com`. */
export function toUserSlug(userName: string): string {
  return userName.toLowerCase().replace(/[^a-z0-9._-]/g, '_');
}

/** A relative avatar belongs to `serverUrl`. */
export function toProviderUser(account: DataCenterAccount, serverUrl: string): ProviderUser {
  return {
    id: String(account.id),
    login: account.name,
    avatarUrl: toAvatarUrl(account.avatarUrl, serverUrl),
    company: null,
    name: account.displayName,
    email: account.emailAddress,
  };
}

/** Older servers know no drafts, so only a draft says so. */
export function newPullRequest(
  { from, to }: { from: DataCenterAddress; to: DataCenterAddress },
  request: NewChangeRequest,
  targetBranch: string,
): Record<string, unknown> {
  const { sourceBranch, title, body, draft } = request;
  return {
    title,
    description: body,
    fromRef: refOf(from, sourceBranch),
    toRef: refOf(to, targetBranch),
    ...(draft && { draft: true }),
  };
}

export function branchRef(branch: string): string {
  return `refs/heads/${branch}`;
}

/** Checks the target too, since the server lists all pull requests of one source branch. */
export function goesTo(
  { toRef }: DataCenterOpenedPullRequest,
  address: DataCenterAddress,
  targetBranch: string,
): boolean {
  return (
    toRef.id === branchRef(targetBranch) &&
    toRef.repository.slug?.toLowerCase() === address.slug.toLowerCase() &&
    toRef.repository.project.key?.toLowerCase() === address.project.toLowerCase()
  );
}

export function toOpenedPullRequest({ id, links }: DataCenterOpenedPullRequest): OpenedChangeRequest | null {
  return toOpenedChangeRequest(id, links.self[0]?.href ?? null);
}

export function toBranchName({ id, displayId }: DataCenterBranch): string | null {
  return displayId ?? id?.replace(/^refs\/heads\//, '') ?? null;
}

export function dataCenterReasons({ errors }: DataCenterRefusal): string[] {
  return errors.flatMap(({ message, context }) => {
    if (message === null) {
      return [];
    }
    return context === null ? message : `${context}: ${message}`;
  });
}

/** The last merge that the server tried; asking for one would cost a request per pull request. */
function toConflicts({ properties }: DataCenterListedPullRequest): Signal {
  switch (properties.mergeResult.outcome) {
    case 'CONFLICTED':
      return 'yes';
    case 'CLEAN':
      return 'no';
    default:
      return 'unknown';
  }
}

function toUnresolvedComments({ reviewers, properties }: DataCenterListedPullRequest): Signal {
  const needsWork = reviewers.some(({ status }) => status === 'NEEDS_WORK');
  return needsWork || (properties.openTaskCount ?? 0) > 0 ? 'yes' : 'no';
}

/** Uploaded pictures have an address relative to the server's host, with its context path. */
function toAvatarUrl(address: string | null, serverUrl: string): string {
  return address !== null && URL.canParse(address, serverUrl) ? new URL(address, serverUrl).href : '';
}

function refOf({ project, slug }: DataCenterAddress, branch: string): Record<string, unknown> {
  return { id: branchRef(branch), repository: { slug, project: { key: project } } };
}

export function repositoryFilter(project: string | null, part: string): Record<string, string> {
  return {
    permission: 'REPO_READ',
    ...(part !== '' && { name: part }),
    ...(project !== null && { projectkey: project }),
  };
}

/** The lists have neither times nor default branches, and the software has no stars. */
export function toFoundRepository(found: DataCenterFoundRepository): FoundRepository {
  return {
    id: found.id,
    name: `${found.project.key}/${found.slug}`,
    isPublic: found.public,
    stars: null,
    activeAt: null,
    ownerType: found.project.type === 'PERSONAL' ? 'user' : 'organization',
    defaultBranch: null,
  };
}

/** Branch restrictions are another resource, which only administrators may read. */
export function toFoundBranch({ displayId, latestCommit }: DataCenterListedBranch): FoundBranch {
  return { name: displayId, commit: latestCommit, isProtected: false, committedAt: null };
}

/** See https://developer.atlassian.com/server/bitbucket/rest/; there are no issues. */
export function toApiGuide(apiUrl: string, name: string, number: number): ApiGuide {
  const [project = '', slug = ''] = name.split('/');
  const change = `${apiUrl}/projects/${project}/repos/${slug}/pull-requests/${number}`;
  return {
    apiUrl,
    noun: 'pull request',
    change: `#${number}`,
    changeUrl: change,
    checks: `${apiUrl.replace('/api/1.0', '')}/build-status/1.0/commits/{sha} with the sha of its last commit`,
    comments: `${change}/activities`,
    issueUrl: change,
    authorization: 'bearer',
  };
}
