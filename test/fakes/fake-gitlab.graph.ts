import { repositoryIn } from './fake-change-requests.js';
import { changeIn, isOpen } from './fake-followed.js';
import { connection, followedMembers, type Page } from './fake-gitlab.followed.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

interface Sorted extends Page {
  sort?: string;
}

/** Root value of the fake's GraphQL: the neutral world in GitLab's words. `reads` counts how often each merge request was read. */
export function gitlabGraph(world: FakeWorld, signedIn: boolean, reads: Map<FakeChangeRequest, number>) {
  return {
    currentUser: signedIn
      ? {
          id: `gid://gitlab/User/${world.user.id}`,
          username: world.user.login,
          name: world.user.name ?? world.user.login,
          authoredMergeRequests: (page: Sorted) =>
            connection(
              world.changeRequests
                .filter(isOpen)
                .toSorted(
                  (a, b) => (page.sort === 'UPDATED_DESC' ? -1 : 1) * a.updatedAt.localeCompare(b.updatedAt),
                )
                .map((change) => mergeRequest(world, change, reads)),
              page,
            ),
        }
      : null,
    projects: (args: Sorted) => {
      const byActivity = args.sort === 'latest_activity_desc' ? -1 : 1;
      const projects = signedIn
        ? world.repositories
            .toSorted((a, b) => byActivity * a.activeAt.localeCompare(b.activeAt))
            .map(project)
        : [];
      return connection(projects, args);
    },
    project: ({ fullPath }: { fullPath: string }) => {
      const found = signedIn ? repositoryIn(world, fullPath) : undefined;
      return found
        ? {
            ...project(found),
            mergeRequest: ({ iid }: { iid: string }) => {
              const change = changeIn(world, found.name, Number(iid));
              return change ? { ...mergeRequest(world, change, reads), ...followedMembers(change) } : null;
            },
          }
        : null;
    },
    queryComplexity: { limit: 250, score: 60 },
  };
}

function mergeRequest(world: FakeWorld, change: FakeChangeRequest, reads: Map<FakeChangeRequest, number>) {
  const seen = reads.get(change) ?? 0;
  reads.set(change, seen + 1);
  const repository = world.repositories.find((candidate) => candidate.name === change.repository);
  if (!repository) {
    throw new Error(`The fake world has no repository ${change.repository}`);
  }
  const discussions = [
    { id: `${change.number}-done`, resolvable: true, resolved: true },
    { id: `${change.number}-system`, resolvable: false, resolved: false },
    ...((change.unresolved ?? 'none') === 'none'
      ? []
      : [{ id: `${change.number}-open`, resolvable: true, resolved: false }]),
  ];
  return {
    id: `gid://gitlab/MergeRequest/${change.number}`,
    iid: String(change.number),
    title: change.title,
    draft: change.draft ?? false,
    updatedAt: change.updatedAt,
    ...mergeStatus(change, seen),
    project: project(repository),
    headPipeline: pipeline(change),
    discussions: (page: Page) => connection(discussions, page),
    resolvableDiscussionsCount: discussions.filter(({ resolvable }) => resolvable).length,
    resolvedDiscussionsCount: discussions.filter(({ resolved }) => resolved).length,
  };
}

const CHECKING = { conflicts: false, mergeStatusEnum: 'CHECKING' };
const UNCHECKED = { conflicts: false, mergeStatusEnum: 'UNCHECKED' };
const MERGEABLE = { conflicts: false, mergeStatusEnum: 'CAN_BE_MERGED' };
const CONFLICTING = { conflicts: true, mergeStatusEnum: 'CANNOT_BE_MERGED' };

function mergeStatus(change: FakeChangeRequest, seen: number): typeof CHECKING {
  const statuses = {
    yes: CONFLICTING,
    no: MERGEABLE,
    unknown: CHECKING,
    later: seen === 0 ? CHECKING : CONFLICTING,
  };
  return change.isUnchecked ? UNCHECKED : statuses[change.conflicts ?? 'no'];
}

const PIPELINE_STATUS = {
  none: null,
  passing: 'SUCCESS',
  pending: 'RUNNING',
  failing: 'FAILED',
  error: 'FAILED',
};

function pipeline(change: FakeChangeRequest): { id: string; status: string } | null {
  const status = PIPELINE_STATUS[change.checks ?? 'none'];
  return status === null ? null : { id: `gid://gitlab/Ci::Pipeline/${change.number}`, status };
}

function project(repository: FakeRepository) {
  return {
    id: `gid://gitlab/Project/${repository.name}`,
    fullPath: repository.name,
    archived: repository.archived ?? false,
    lastActivityAt: repository.activeAt,
    userPermissions: { pushCode: repository.writable ?? true, readProject: true },
    repository: {
      empty: repository.empty ?? false,
      exists: !repository.empty,
      rootRef: repository.empty ? null : 'main',
      tree: ({ path }: { path?: string }) => (repository.empty ? null : tree(repository, path ?? '')),
    },
  };
}

function tree(repository: FakeRepository, path: string) {
  const folders: Record<string, string[] | undefined> = {
    '': repository.rootEntries ?? ['README.md', 'src'],
    '.openhands/microagents': repository.microagents,
    '.openhands/skills': repository.skills,
  };
  const entries = (folders[path] ?? []).map((name) => ({
    id: `${path}/${name}`,
    name,
    path: path === '' ? name : `${path}/${name}`,
  }));
  return {
    blobs: (page: Page) =>
      connection(
        entries.filter(({ name }) => isFileName(name)),
        page,
      ),
    trees: (page: Page) =>
      connection(
        entries.filter(({ name }) => !isFileName(name)),
        page,
      ),
  };
}

/** The world does not say which entries are folders: names without an extension are, except the known dot files. */
function isFileName(name: string): boolean {
  return name.lastIndexOf('.') > 0 || /^\.[a-z_]*(rules|instructions)$/i.test(name);
}
