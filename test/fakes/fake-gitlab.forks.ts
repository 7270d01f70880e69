import { jsonText } from '@slipway/common/json-access.js';
import { repositoryIn } from './fake-change-requests.js';
import { forkInto, isCopying, ownForks, sidesOf } from './fake-forks.js';
import { repositoryId } from './fake-lists.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

const NOT_FOUND: FakeResponse = { status: 404, body: { message: '404 Project Not Found' } };

/** Projects with their forks, and where merge requests come from; null for every other path (below `/v4`). */
export function answerForks(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [matched, place = '', resource, iid] =
    /^\/projects\/([^/]+)(?:\/(forks?|merge_requests\/(\d+)))?$/.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const found = repositoryIn(world, decodeURIComponent(place));
  if (!found) {
    return NOT_FOUND;
  }
  switch (resource) {
    case undefined:
      return { body: project(world, found) };
    case 'forks':
      return {
        body: ownForks(world, found.name, world.user.login).map((fork) => project(world, fork)),
      };
    case 'fork':
      return create(world, found, request);
    default:
      return showMergeRequest(world, found, Number(iid));
  }
}

/** The user is a member of the project's group, if at all, but not of the project. */
function project(world: FakeWorld, found: FakeRepository) {
  const level = found.writable === false ? null : { access_level: 30 };
  return {
    id: repositoryId(world, found),
    path_with_namespace: found.name,
    default_branch: found.defaultBranch ?? 'main',
    permissions: { project_access: null, group_access: level },
    forking_access_level: found.forking === 'forbidden' ? 'disabled' : 'enabled',
    import_status: found.forkOf === undefined ? 'none' : isCopying(found) ? 'started' : 'finished',
  };
}

function create(world: FakeWorld, upstream: FakeRepository, request: FakeRequest): FakeResponse {
  const name = jsonText(JSON.parse(request.body), 'path') ?? '';
  const fork = forkInto(world, upstream, `${world.user.login}/${name}`);
  switch (fork) {
    case 'forbidden':
      return { status: 403, body: { message: '403 Forbidden' } };
    case 'taken': {
      const members = ['Project namespace name', 'Name', 'Path'];
      return { status: 409, body: { message: members.map((member) => `${member} has already been taken`) } };
    }
    default:
      return { status: 201, body: { ...project(world, fork), import_status: 'scheduled' } };
  }
}

function showMergeRequest(world: FakeWorld, { name }: FakeRepository, iid: number): FakeResponse {
  const sides = sidesOf(world, name, iid);
  if (!sides) {
    return { status: 404, body: { message: '404 Not found' } };
  }
  Object.assign(sides.change, { isUnchecked: false });
  return {
    body: {
      iid,
      merge_status: 'checking',
      has_conflicts: false,
      source_project_id: sides.source && repositoryId(world, sides.source),
      source_branch: sides.branch,
      target_branch: sides.target,
      allow_collaboration: sides.change.allowsMaintainers ?? false,
    },
  };
}
