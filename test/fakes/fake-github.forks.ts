import { defaultBranchOf, repositoryIn } from './fake-change-requests.js';
import { forkInto, isCopying, ownForks, sidesOf } from './fake-forks.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

const PATH = /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+)\/(?:(forks)|pulls\/(\d+)|(branches))$/;

/** Forks, and where pull requests come from; null for every other address. */
export function answerForks(world: FakeWorld, request: FakeRequest): FakeResponse | null {
  const [matched, name = '', forks, number, branches] = PATH.exec(request.path) ?? [];
  const repository = matched === undefined ? undefined : repositoryIn(world, name);
  if (matched === undefined || (branches !== undefined && !(repository && isCopying(repository)))) {
    return null;
  }
  if (!repository) {
    return { status: 404, body: { message: 'Not Found', status: '404' } };
  }
  if (branches !== undefined) {
    return { body: [] };
  }
  if (forks !== undefined) {
    return request.method === 'POST' ? create(world, repository) : null;
  }
  const sides = request.method === 'GET' ? sidesOf(world, repository.name, Number(number)) : null;
  return sides
    ? {
        body: {
          number: sides.change.number,
          head: {
            label: `someone:${sides.branch}`,
            ref: sides.branch,
            repo: sides.source && { full_name: sides.source.name },
          },
          base: { ref: sides.target, repo: { full_name: repository.name } },
          maintainer_can_modify: sides.change.allowsMaintainers ?? false,
        },
      }
    : { status: 404, body: { message: 'Not Found', status: '404' } };
}

/** One that exists is answered as a new one is, and a name that is taken gets a number. */
function create(world: FakeWorld, upstream: FakeRepository): FakeResponse {
  const { login } = world.user;
  const [existing] = ownForks(world, upstream.name, login);
  const [, base = ''] = upstream.name.split('/');
  const names = [base, ...Array.from({ length: 9 }, (_unused, index) => `${base}-${index + 1}`)];
  const free = names.find((name) => !repositoryIn(world, `${login}/${name}`)) ?? base;
  const fork = existing ?? forkInto(world, upstream, `${login}/${free}`);
  return typeof fork === 'string'
    ? { status: 403, body: { message: 'The repository exists, but forking is disabled.', status: '403' } }
    : { status: 202, body: { full_name: fork.name, fork: true, default_branch: defaultBranchOf(fork) } };
}
