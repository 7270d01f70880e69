import { defaultBranchOf, repositoryIn } from './fake-change-requests.js';
import {
  branchesOf,
  contains,
  isOwnedByUser,
  newestFirst,
  ownerOf,
  pageIn,
  repositoryId,
} from './fake-lists.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

/** Lists of projects and branches over REST; null for every other path (below `/v4`). */
export function answerLists(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  if (request.method === 'GET' && path === '/projects') {
    return paged(request, projects(world, request.query), (item) => project(world, item));
  }
  const [, name] = /^\/projects\/([^/]+)\/repository\/branches$/.exec(path) ?? [];
  if (name === undefined) {
    return null;
  }
  const found = repositoryIn(world, decodeURIComponent(name));
  if (!found) {
    return { status: 404, body: { message: '404 Project Not Found' } };
  }
  const search = request.query.get('search') ?? '';
  return paged(
    request,
    branchesOf(found).filter((branch) => contains(branch.name, search)),
    (branch) => ({
      name: branch.name,
      commit: { id: branch.commit, committed_date: branch.committedAt },
      protected: branch.isProtected,
      default: branch.name === defaultBranchOf(found),
    }),
  );
}

/** GitLab lists every public project of the server unless `membership` is set; in this world strangers have none. */
function projects(world: FakeWorld, query: URLSearchParams): FakeRepository[] {
  const mine = query.get('membership') === 'true' ? world.repositories : [];
  const search = query.get('search');
  const found = mine.filter(
    ({ name }) =>
      search === null ||
      contains(query.get('search_namespaces') === 'true' ? name : (name.split('/').at(-1) ?? ''), search),
  );
  const sorted =
    query.get('order_by') === 'star_count'
      ? found.toSorted((a, b) => (b.stars ?? 0) - (a.stars ?? 0))
      : newestFirst(found);
  return query.get('sort') === 'asc' ? sorted.toReversed() : sorted;
}

function paged<T>({ query }: FakeRequest, all: T[], show: (item: T) => unknown): FakeResponse {
  const { items, page, hasMore } = pageIn(all, query, { size: 'per_page', usual: 20 });
  return {
    headers: { 'x-page': String(page), 'x-next-page': hasMore ? String(page + 1) : '' },
    body: items.map(show),
  };
}

function project(world: FakeWorld, item: FakeRepository) {
  return {
    id: repositoryId(world, item),
    path_with_namespace: item.name,
    visibility: item.isPublic ? 'public' : 'private',
    star_count: item.stars ?? 0,
    last_activity_at: item.activeAt,
    default_branch: defaultBranchOf(item),
    namespace: { kind: isOwnedByUser(world, item) ? 'user' : 'group', full_path: ownerOf(item) },
  };
}
