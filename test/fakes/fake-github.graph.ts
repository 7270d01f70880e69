import { GraphQLError } from 'graphql';
import { changeIn, isOpen } from './fake-followed.js';
import { followedMembers, type Window } from './fake-github.followed.js';
import { branchesOf, contains } from './fake-lists.js';
import type { FakeChangeRequest, FakeIssue, FakeRepository, FakeWorld } from './fake-world.js';

interface Ordered extends Window {
  orderBy?: { field: string; direction: 'ASC' | 'DESC' };
}

interface RepositoriesArgs extends Ordered {
  affiliations?: string[];
  ownerAffiliations?: string[];
}

interface RefsArgs extends Ordered {
  refPrefix: string;
  query?: string;
}

interface SearchArgs extends Window {
  type: string;
  query: string;
}

/**
 * Root value of the fake's GraphQL: the neutral world in GitHub's words, for resolvers of graphql-js.
 *
 * @param reads how often the mergeability of each change request was read
 * @param isApp asked by a token of an installation, which is no user
 * @param resourceLimit elements of a page of the user's own lists, beyond which it is null with an error beside it
 */
export function githubGraph(
  world: FakeWorld,
  reads: Map<FakeChangeRequest, number>,
  resourceLimit = Infinity,
  isApp = false,
) {
  const graph = userGraph(world, reads, resourceLimit);
  const { viewer } = graph;
  return {
    ...graph,
    viewer: () => {
      if (isApp) {
        throw new GraphQLError('Resource not accessible by integration', {
          extensions: { type: 'FORBIDDEN' },
        });
      }
      return viewer;
    },
    user: ({ login }: { login: string }) => {
      if (login.toLowerCase() !== world.user.login.toLowerCase()) {
        const message = `Could not resolve to a User with the login of '${login}'.`;
        throw new GraphQLError(message, { extensions: { type: 'NOT_FOUND' } });
      }
      return viewer;
    },
  };
}

function userGraph(world: FakeWorld, reads: Map<FakeChangeRequest, number>, resourceLimit: number) {
  return {
    rateLimit: { cost: 1, nodeCount: 160, remaining: 4_900, limit: 5_000, resetAt: '2030-01-01T00:00:00Z' },
    viewer: {
      __typename: 'User',
      login: world.user.login,
      pullRequests: (args: Ordered & { states?: string[] }) =>
        costly(
          resourceLimit,
          args,
          connection(
            args.states?.includes('OPEN') === false
              ? []
              : newestFirst(
                  world.changeRequests.filter(isOpen),
                  'UPDATED_AT',
                  args,
                  ({ updatedAt }) => updatedAt,
                ).map((change) => pullRequest(world, change, reads)),
            args,
          ),
        ),
      repositories: (args: RepositoriesArgs) =>
        costly(
          resourceLimit,
          args,
          connection(
            newestFirst(
              world.repositories.filter(({ name }) => isListed(world, name, args)),
              'PUSHED_AT',
              args,
              ({ activeAt }) => activeAt,
            ).map(repository),
            args,
          ),
        ),
    },
    search: (args: SearchArgs) => {
      const found = searchIssues(world, args);
      const { nodes, pageInfo } = connection(found, args);
      return { issueCount: found.length, nodes, pageInfo };
    },
    repository: ({ owner, name }: { owner: string; name: string }) => {
      const found = world.repositories.find((candidate) => candidate.name === `${owner}/${name}`);
      if (!found) {
        throw new GraphQLError(`Could not resolve to a Repository with the name '${owner}/${name}'.`, {
          extensions: { type: 'NOT_FOUND' },
        });
      }
      return {
        __typename: 'Repository',
        refs: (args: RefsArgs) => refs(found, args),
        pullRequest: ({ number }: { number: number }) => {
          const change = changeIn(world, found.name, number);
          if (!change) {
            throw new GraphQLError(`Could not resolve to a PullRequest with the number of ${number}.`, {
              extensions: { type: 'NOT_FOUND' },
            });
          }
          return { ...pullRequest(world, change, reads), ...followedMembers(world, change, connection) };
        },
      };
    },
    nodes: ({ ids }: { ids: string[] }) =>
      ids.map((id) => {
        const change = world.changeRequests.find((candidate) => nodeId(candidate) === id);
        return change ? pullRequest(world, change, reads) : null;
      }),
  };
}

/** GitHub has done so since July 2026: status 200, the list is null, and an error of this type names it. */
function costly<T extends { nodes: unknown[] }>(limit: number, { first, last }: Window, page: T) {
  return {
    ...page,
    nodes: () => {
      if ((first ?? last ?? 0) > limit) {
        throw new GraphQLError('Resource limits for this query exceeded.', {
          extensions: { type: 'RESOURCE_LIMITS_EXCEEDED' },
        });
      }
      return page.nodes;
    },
  };
}

/** GitHub leaves out what organisations own unless both lists have ORGANIZATION_MEMBER. */
function isListed(world: FakeWorld, name: string, args: RepositoriesArgs): boolean {
  const isOwn = name.startsWith(`${world.user.login}/`);
  return (
    isOwn ||
    [args.affiliations, args.ownerAffiliations].every((list) => list?.includes('ORGANIZATION_MEMBER'))
  );
}

/** Sorts as asked; refuses an order that the fake does not know rather than answering in another one. */
function newestFirst<T>(items: T[], field: string, args: Ordered, timeOf: (item: T) => string): T[] {
  if (args.orderBy?.field !== field) {
    throw new GraphQLError(`The fake sorts by ${field} only`);
  }
  const sign = args.orderBy.direction === 'DESC' ? -1 : 1;
  return items.toSorted((a, b) => sign * (Date.parse(timeOf(a)) - Date.parse(timeOf(b))));
}

function nodeId(change: FakeChangeRequest): string {
  return `PR_${Buffer.from(`${change.repository}#${change.number}`).toString('base64url')}`;
}

function pullRequest(world: FakeWorld, change: FakeChangeRequest, reads: Map<FakeChangeRequest, number>) {
  const unresolved = change.unresolved ?? 'none';
  const threads = [
    { id: 'thread-1', isResolved: true, isOutdated: true },
    ...(unresolved === 'thread' || unresolved === 'task'
      ? [{ id: 'thread-2', isResolved: false, isOutdated: false }]
      : []),
  ];
  const reviews = [
    {
      id: 'review-1',
      state: unresolved === 'changes_requested' ? 'CHANGES_REQUESTED' : 'APPROVED',
      submittedAt: change.updatedAt,
    },
  ];
  const state = ROLLUP_STATES[change.checks ?? 'none'];
  const commit = {
    oid: 'c0ffee0000000000000000000000000000000000',
    statusCheckRollup: state === null ? null : { state },
  };
  return {
    __typename: 'PullRequest',
    id: nodeId(change),
    number: change.number,
    title: change.title,
    isDraft: change.draft ?? false,
    updatedAt: change.updatedAt,
    mergeable: () => mergeable(change, reads),
    repository: repositoryOf(world, change.repository),
    commits: (args: Window) => connection([{ commit }], args),
    reviewThreads: (args: Window) => connection(threads, args),
    latestOpinionatedReviews: (args: Window) => connection(reviews, args),
  };
}

const ROLLUP_STATES = {
  none: null,
  passing: 'SUCCESS',
  pending: 'PENDING',
  failing: 'FAILURE',
  error: 'ERROR',
};

function mergeable(change: FakeChangeRequest, reads: Map<FakeChangeRequest, number>): string {
  const seen = reads.get(change) ?? 0;
  reads.set(change, seen + 1);
  const values = {
    yes: 'CONFLICTING',
    no: 'MERGEABLE',
    unknown: 'UNKNOWN',
    later: seen === 0 ? 'UNKNOWN' : 'CONFLICTING',
  };
  return values[change.conflicts ?? 'no'];
}

function repositoryOf(world: FakeWorld, name: string) {
  const found = world.repositories.find((candidate) => candidate.name === name);
  if (!found) {
    throw new GraphQLError(`The fake world has no repository ${name}`);
  }
  return repository(found);
}

function repository(given: FakeRepository) {
  const { microagents, skills } = given;
  const rootEntries = given.rootEntries ?? ['README.md', 'src'];
  const hasFolder = microagents !== undefined || skills !== undefined;
  const folders: Record<string, string[] | undefined> = {
    'HEAD:': hasFolder ? [...new Set([...rootEntries, '.openhands'])] : rootEntries,
    'HEAD:.openhands': hasFolder
      ? [...(microagents ? ['microagents'] : []), ...(skills ? ['skills'] : [])]
      : undefined,
    'HEAD:.openhands/microagents': microagents,
    'HEAD:.openhands/skills': skills,
  };
  return {
    __typename: 'Repository',
    nameWithOwner: given.name,
    pushedAt: given.activeAt,
    isArchived: given.archived ?? false,
    isDisabled: false,
    isEmpty: given.empty ?? false,
    isFork: given.fork ?? false,
    isMirror: given.mirror ?? false,
    viewerPermission: given.writable === false ? 'READ' : 'WRITE',
    object: ({ expression }: { expression?: string }) => {
      const names = given.empty ? undefined : folders[expression ?? ''];
      return names ? { __typename: 'Tree', entries: names.map(treeEntry) } : null;
    },
  };
}

function refs(repositoryInWorld: FakeRepository, args: RefsArgs) {
  if (args.refPrefix !== 'refs/heads/' || args.orderBy?.field !== 'ALPHABETICAL') {
    throw new GraphQLError('The fake lists branches by their names only');
  }
  const found = branchesOf(repositoryInWorld)
    .filter(({ name }) => contains(name, args.query ?? ''))
    .toSorted((a, b) => a.name.localeCompare(b.name));
  return connection(
    found.map(({ name, commit, isProtected, committedAt }) => ({
      __typename: 'Ref',
      name,
      target: { __typename: 'Commit', oid: commit, committedDate: committedAt },
      branchProtectionRule: isProtected ? { __typename: 'BranchProtectionRule', id: 'BPR_1' } : null,
    })),
    args,
  );
}

function treeEntry(name: string) {
  return { name, type: /^(\.openhands|[a-z]+)$/.test(name) ? 'tree' : 'blob' };
}

/** Knows the words the service uses; another word is refused, not ignored. */
function searchIssues(world: FakeWorld, { type, query }: SearchArgs) {
  const filters: Record<string, (issue: FakeIssue) => boolean> = {
    'is:issue': () => true,
    'is:open': () => true,
    'assignee:@me': () => true,
    [`assignee:${world.user.login}`]: () => true,
    'archived:false': (issue) => !repositoryOf(world, issue.repository).isArchived,
    'sort:updated-desc': () => true,
  };
  const words = query.split(/\s+/);
  const unknown = words.filter((word) => !Object.hasOwn(filters, word));
  if (type !== 'ISSUE' || unknown.length > 0 || !words.includes('sort:updated-desc')) {
    throw new GraphQLError(`The fake cannot search ${type} for "${query}"`);
  }
  return world.issues
    .filter((issue) => words.every((word) => filters[word]?.(issue)))
    .toSorted((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt))
    .map((issue) => ({
      __typename: 'Issue',
      number: issue.number,
      title: issue.title,
      updatedAt: issue.updatedAt,
      repository: repositoryOf(world, issue.repository),
    }));
}

function connection<T>(all: T[], { first, last }: Window) {
  const size = first ?? last;
  if (size === undefined || size < 1 || size > 100) {
    throw new GraphQLError('You must provide a `first` or `last` value between 1 and 100.', {
      extensions: { type: 'EXCESSIVE_PAGINATION' },
    });
  }
  const nodes = first === undefined ? all.slice(-size) : all.slice(0, size);
  return {
    totalCount: all.length,
    nodes,
    pageInfo: {
      hasNextPage: first !== undefined && nodes.length < all.length,
      hasPreviousPage: first === undefined && nodes.length < all.length,
      startCursor: null,
      endCursor: nodes.length === 0 ? null : `cursor-${nodes.length}`,
    },
  };
}
