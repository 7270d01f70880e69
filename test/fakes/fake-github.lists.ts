import { repositoryIn } from './fake-change-requests.js';
import {
  branchesOf,
  contains,
  isOwnedByUser,
  newestFirst,
  ownerOf,
  ownersIn,
  pageIn,
  repositoryId,
} from './fake-lists.js';
import { memberOf } from './fake-members.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

/** GitHub finds no more than this of what a search matches. */
const MAX_FOUND = 1_000;

/** Everybody may read a public repository; apps are no users. */
function collaborator(world: FakeWorld, repository: string, login: string): FakeResponse | null {
  const found = repositoryIn(world, repository);
  if (found === undefined || login.endsWith('[bot]')) {
    return null;
  }
  if (found.writable === false) {
    return { status: 403, body: { message: 'Must have push access to view collaborator permission.' } };
  }
  const { id, permission } = memberOf(world, repository, (each) => each.login === login);
  const shown = permission === 'none' && found.isPublic ? 'read' : permission;
  return { body: { permission: shown, role_name: shown, user: { id: Number(id), login } } };
}

/** Repositories, branches and installations over REST; null for every other path. */
export function answerLists(world: FakeWorld, request: FakeRequest): FakeResponse | null {
  const path = request.path.replace(/^\/api\/v3/, '');
  if (request.method !== 'GET') {
    return null;
  }
  switch (path) {
    case '/user/repos':
      return paged(request, newestFirst(world.repositories), (item) => repository(world, item));
    case '/user/orgs':
      return paged(request, organizations(world), (login) => ({ login, id: 77 }));
    case '/user/installations':
      return world.appInstallations
        ? wrapped(request, 'installations', world.appInstallations, ({ id, owner }) => ({
            id,
            account: { login: owner },
          }))
        : forbidden();
    case '/search/repositories':
      return search(world, request);
  }
  if (path === '/installation/repositories') {
    return wrapped(request, 'repositories', newestFirst(world.repositories), (item) =>
      repository(world, item),
    );
  }
  const [, installation] = /^\/user\/installations\/(\d+)\/repositories$/.exec(path) ?? [];
  if (installation !== undefined) {
    const owner = world.appInstallations?.find(({ id }) => String(id) === installation)?.owner;
    const installed = world.repositories.filter((item) => ownerOf(item) === owner);
    return owner === undefined
      ? forbidden()
      : wrapped(request, 'repositories', installed, (item) => repository(world, item));
  }
  const [, place, login] = /^\/repos\/([^/]+\/[^/]+)\/collaborators\/([^/]+)\/permission$/.exec(path) ?? [];
  if (place !== undefined) {
    return collaborator(world, place, decodeURIComponent(login ?? ''));
  }
  const [, name] = /^\/repos\/([^/]+\/[^/]+)\/branches$/.exec(path) ?? [];
  if (name !== undefined) {
    const found = repositoryIn(world, name);
    return found
      ? paged(request, branchesOf(found), (branch) => ({
          name: branch.name,
          commit: { sha: branch.commit, url: '' },
          protected: branch.isProtected,
        }))
      : null;
  }
  return null;
}

function organizations(world: FakeWorld): string[] {
  return ownersIn(world).filter((owner) => owner !== world.user.login);
}

function forbidden(): FakeResponse {
  return {
    status: 403,
    body: {
      message:
        'You must authenticate with an access token authorized to a GitHub App in order to list installations',
    },
  };
}

function search(world: FakeWorld, request: FakeRequest): FakeResponse {
  const words = (request.query.get('q') ?? '').split(' ');
  const owners = words
    .flatMap((word) => /^(?:user|org):(.+)$/.exec(word)?.[1] ?? [])
    .map((owner) => (owner === '@me' ? world.user.login : owner));
  const known = [...ownersIn(world), world.user.login];
  if (owners.every((owner) => !known.includes(owner))) {
    const message =
      'The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.';
    return {
      status: 422,
      body: {
        message: 'Validation Failed',
        errors: [{ message, resource: 'Search', field: 'q', code: 'invalid' }],
      },
    };
  }
  const texts = words.filter((word) => word !== '' && !word.includes(':'));
  const found = world.repositories.filter(
    (item) =>
      owners.includes(ownerOf(item)) &&
      (item.fork !== true || words.includes('fork:true')) &&
      texts.every((text) =>
        contains(words.includes('in:name') ? (item.name.split('/')[1] ?? '') : item.name, text),
      ),
  );
  const sorted = request.query.get('sort') === 'stars' ? byStars(found, request) : newestFirst(found);
  const { items, page, size } = pageIn(sorted.slice(0, MAX_FOUND), request.query, {
    size: 'per_page',
    usual: 30,
  });
  if (page * size > MAX_FOUND + size) {
    return { status: 422, body: { message: 'Only the first 1000 search results are available' } };
  }
  return {
    body: {
      total_count: found.length,
      incomplete_results: false,
      items: items.map((item) => repository(world, item)),
    },
  };
}

function byStars(found: FakeRepository[], request: FakeRequest): FakeRepository[] {
  const sign = request.query.get('order') === 'asc' ? 1 : -1;
  return found.toSorted((a, b) => sign * ((a.stars ?? 0) - (b.stars ?? 0)));
}

function paged<T>(request: FakeRequest, all: T[], show: (item: T) => unknown): FakeResponse {
  const { items, page, hasMore } = pageIn(all, request.query, { size: 'per_page', usual: 30 });
  return { headers: link(page, hasMore), body: items.map(show) };
}

function wrapped<T>(request: FakeRequest, key: string, all: T[], show: (item: T) => unknown): FakeResponse {
  const { items, page, hasMore } = pageIn(all, request.query, { size: 'per_page', usual: 30 });
  return { headers: link(page, hasMore), body: { total_count: all.length, [key]: items.map(show) } };
}

function link(page: number, hasMore: boolean): Record<string, string> {
  const to = (rel: string, number: number): string =>
    `<https://api.github.com/resource?page=${number}>; rel="${rel}"`;
  const links = [...(page > 1 ? [to('prev', page - 1)] : []), ...(hasMore ? [to('next', page + 1)] : [])];
  return links.length > 0 ? { link: links.join(', ') } : {};
}

function repository(world: FakeWorld, item: FakeRepository) {
  return {
    id: repositoryId(world, item),
    full_name: item.name,
    name: item.name.split('/')[1],
    private: !(item.isPublic ?? false),
    fork: item.fork ?? false,
    archived: item.archived ?? false,
    stargazers_count: item.stars ?? 0,
    pushed_at: item.activeAt,
    default_branch: item.defaultBranch ?? 'main',
    owner: { login: ownerOf(item), type: isOwnedByUser(world, item) ? 'User' : 'Organization' },
  };
}
