import { jsonText } from '@slipway/common/json-access.js';
import { failure } from './fake-bitbucket.followed.js';
import { repositoryIn } from './fake-change-requests.js';
import { forkInto, isCopying } from './fake-forks.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeWorld } from './fake-world.js';

/** Forks, and where pull requests come from; null for every other path (below `/2.0`). */
export function answerForks(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [matched, name = '', resource] =
    /^\/repositories\/([^/]+\/[^/]+)\/(forks|refs\/branches)$/.exec(path) ?? [];
  const repository = matched === undefined ? undefined : repositoryIn(world, decodeURIComponent(name));
  if (!repository) {
    return null;
  }
  if (resource === 'refs/branches') {
    return isCopying(repository) ? { body: { values: [] } } : null;
  }
  if (request.method !== 'POST') {
    const forks = world.repositories.filter(
      ({ forkOf, writable }) => forkOf === repository.name && writable !== false,
    );
    return { body: { values: forks.map((fork) => ({ full_name: fork.name })) } };
  }
  const body: unknown = JSON.parse(request.body);
  const fork = forkInto(
    world,
    repository,
    `${jsonText(body, 'workspace', 'slug')}/${jsonText(body, 'name')}`,
  );
  switch (fork) {
    case 'forbidden':
      return failure(403, 'Forking is not allowed');
    case 'taken':
      return failure(400, 'Repository with this Slug and Owner already exists.');
    default:
      return { status: 201, body: { full_name: fork.name } };
  }
}
