import { jsonText } from '@slipway/common/json-access.js';
import { failure, page } from './fake-bitbucket-data-center.lists.js';
import { repositoryIn } from './fake-change-requests.js';
import { forkInto, isCopying, ownForks, sidesOf } from './fake-forks.js';
import { contains, ownerOf } from './fake-lists.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

/** Repositories with their forks; null for every other path (below `/rest`). */
export function answerForks(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const { query, method } = request;
  if (path === '/api/latest/repos' && query.get('permission') === 'REPO_WRITE') {
    const found = world.repositories.filter(
      (each) =>
        each.writable !== false &&
        ownerOf(each) === query.get('projectkey') &&
        contains(each.name.split('/')[1] ?? '', query.get('name') ?? ''),
    );
    return { body: page(query, found.map(shown)) };
  }
  const [matched, key = '', slug = '', forks] =
    /^\/api\/latest\/projects\/([^/]+)\/repos\/([^/]+)(\/forks)?$/.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const found = repositoryIn(world, `${decodeURIComponent(key)}/${decodeURIComponent(slug)}`);
  if (!found) {
    return failure(404, `Repository ${key}/${slug} does not exist.`);
  }
  if (forks !== undefined) {
    return { body: page(query, ownForks(world, found.name, ownProject(world)).map(shown)) };
  }
  return method === 'POST' ? create(world, found, request) : { body: shown(found) };
}

/** The members of a pull request that say where it comes from; of a deleted fork nothing is said. */
export function refsOf(world: FakeWorld, repository: string, id: number) {
  const sides = sidesOf(world, repository, id);
  const [key, slug] = repository.split('/');
  return (
    sides && {
      fromRef: {
        id: `refs/heads/${sides.branch}`,
        displayId: sides.branch,
        ...(sides.source && { repository: shown(sides.source) }),
      },
      toRef: {
        id: `refs/heads/${sides.target}`,
        displayId: sides.target,
        repository: { slug, project: { key } },
      },
    }
  );
}

function ownProject({ user }: FakeWorld): string {
  return `~${user.login}`;
}

function create(world: FakeWorld, upstream: FakeRepository, request: FakeRequest): FakeResponse {
  if (request.headers['x-atlassian-token'] !== 'no-check') {
    return failure(403, 'XSRF check failed');
  }
  const name = jsonText(JSON.parse(request.body), 'name') ?? '';
  const fork = forkInto(world, upstream, `${ownProject(world)}/${name}`);
  switch (fork) {
    case 'forbidden':
      return failure(403, 'You are not permitted to fork this repository.');
    case 'taken':
      return failure(409, 'This repository URL is already taken.');
    default:
      return { status: 201, body: shown(fork) };
  }
}

function shown(found: FakeRepository) {
  const [key, slug] = found.name.split('/');
  return {
    slug,
    project: { key, type: key?.startsWith('~') ? 'PERSONAL' : 'NORMAL' },
    state: isCopying(found) ? 'INITIALISING' : 'AVAILABLE',
    forkable: found.forking !== 'forbidden',
  };
}
