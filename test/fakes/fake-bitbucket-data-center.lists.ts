import { repositoryIn } from './fake-change-requests.js';
import { branchesOf, contains, ownerOf, ownersIn, repositoryId } from './fake-lists.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

/** Lists of repositories, branches and projects; null for every other path (below `/rest`). */
export function answerLists(
  world: FakeWorld,
  { method, query }: FakeRequest,
  path: string,
): FakeResponse | null {
  if (method !== 'GET') {
    return null;
  }
  const paged = (all: unknown[]): FakeResponse => ({ body: page(query, all) });
  const shown = (found: FakeRepository[]) => paged(found.map((item) => repository(world, item)));
  if (path === '/api/1.0/projects') {
    return paged(ownersIn(world).map((key) => ({ key, type: 'NORMAL' })));
  }
  if (path === '/api/1.0/repos') {
    const project = query.get('projectkey');
    const named = world.repositories.filter((item) =>
      contains(item.name.split('/')[1] ?? '', query.get('name') ?? ''),
    );
    return shown(named.filter((item) => project === null || ownerOf(item) === project));
  }
  const [, key] = /^\/api\/1\.0\/projects\/([^/]+)\/repos$/.exec(path) ?? [];
  if (key !== undefined) {
    const found = world.repositories.filter((item) => ownerOf(item) === decodeURIComponent(key));
    return found.length === 0 ? failure(404, `Project ${key} does not exist.`) : shown(found);
  }
  const [, project, slug] = /^\/api\/1\.0\/projects\/([^/]+)\/repos\/([^/]+)\/branches$/.exec(path) ?? [];
  if (project === undefined) {
    return null;
  }
  const found = repositoryIn(world, `${decodeURIComponent(project)}/${slug}`);
  if (!found) {
    return failure(404, `Repository ${project}/${slug} does not exist.`);
  }
  const branches = branchesOf(found).filter(({ name }) => contains(name, query.get('filterText') ?? ''));
  return paged(
    branches.map(({ name, commit }) => ({
      id: `refs/heads/${name}`,
      displayId: name,
      type: 'BRANCH',
      latestCommit: commit,
    })),
  );
}

export function failure(status: number, message: string): FakeResponse {
  return { status, body: { errors: [{ context: null, message, exceptionName: null }] } };
}

export function page(query: URLSearchParams, all: unknown[]) {
  const limit = Number(query.get('limit') ?? 25);
  const start = Number(query.get('start') ?? 0);
  const isLastPage = all.length <= start + limit;
  const values = all.slice(start, start + limit);
  return {
    size: values.length,
    limit,
    start,
    isLastPage,
    values,
    nextPageStart: isLastPage ? null : start + limit,
  };
}

function repository(world: FakeWorld, item: FakeRepository) {
  return {
    id: repositoryId(world, item),
    slug: item.name.split('/')[1],
    project: { key: ownerOf(item), type: 'NORMAL' },
    public: item.isPublic ?? false,
    archived: item.archived ?? false,
  };
}
