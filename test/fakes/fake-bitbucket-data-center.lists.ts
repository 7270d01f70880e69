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
  if (path === '/api/1.0/projects') {
    return {
      body: page(
        query,
        ownersIn(world).map((key) => ({ key, type: 'NORMAL' })),
      ),
    };
  }
  if (path === '/api/1.0/repos') {
    const project = query.get('projectkey');
    const found = world.repositories.filter(
      (item) =>
        (project === null || ownerOf(item) === project) &&
        contains(item.name.split('/')[1] ?? '', query.get('name') ?? ''),
    );
    return {
      body: page(
        query,
        found.map((item) => repository(world, item)),
      ),
    };
  }
  const [, key] = /^\/api\/1\.0\/projects\/([^/]+)\/repos$/.exec(path) ?? [];
  if (key !== undefined) {
    const found = world.repositories.filter((item) => ownerOf(item) === decodeURIComponent(key));
    return found.length === 0
      ? missing(`Project ${key} does not exist.`)
      : {
          body: page(
            query,
            found.map((item) => repository(world, item)),
          ),
        };
  }
  const [, project, slug] = /^\/api\/1\.0\/projects\/([^/]+)\/repos\/([^/]+)\/branches$/.exec(path) ?? [];
  if (project === undefined) {
    return null;
  }
  const found = repositoryIn(world, `${decodeURIComponent(project)}/${slug}`);
  return found
    ? {
        body: page(
          query,
          branchesOf(found)
            .filter(({ name }) => contains(name, query.get('filterText') ?? ''))
            .map(({ name, commit }) => ({
              id: `refs/heads/${name}`,
              displayId: name,
              type: 'BRANCH',
              latestCommit: commit,
            })),
        ),
      }
    : missing(`Repository ${project}/${slug} does not exist.`);
}

function missing(message: string): FakeResponse {
  return { status: 404, body: { errors: [{ context: null, message, exceptionName: null }] } };
}

function page(query: URLSearchParams, all: unknown[]) {
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
