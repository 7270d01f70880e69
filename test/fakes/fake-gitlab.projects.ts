import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { type FakeRefusal, openFrom, openIn, pageOf, repositoryIn } from './fake-change-requests.js';
import { repositoryId } from './fake-lists.js';
import { memberOf } from './fake-members.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

/** Id of another fork that also has requests. */
const FORK_ID = 4_100;

/** Members of projects, and merge requests over REST; null for every other path (below `/v4`). */
export function answerProjects(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [isMember, place, account] = /^\/projects\/([^/]+)\/members\/all\/([^/]+)$/.exec(path) ?? [];
  if (isMember !== undefined) {
    const { id, login, permission } = memberOf(
      world,
      decodeURIComponent(place ?? ''),
      (each) => each.id === account,
    );
    return permission === 'none'
      ? { status: 404, body: { message: '404 Not found' } }
      : {
          body: {
            id: Number(id),
            username: login,
            state: 'active',
            access_level: permission === 'write' ? 30 : 20,
          },
        };
  }
  const [matched, name] = /^\/projects\/([^/]+)\/merge_requests$/.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const project = repositoryIn(world, decodeURIComponent(name ?? ''));
  if (!project) {
    return { status: 404, body: { message: '404 Project Not Found' } };
  }
  return request.method === 'POST' ? create(world, project, request) : list(world, project, request);
}

function list(world: FakeWorld, { name }: FakeRepository, { query }: FakeRequest): FakeResponse {
  const forks = world.repositories.filter(({ forkOf }) => forkOf === name).map((fork) => fork.name);
  const found = [undefined, ...forks].flatMap((fork) =>
    openFrom(world, name, query.get('source_branch') ?? '', fork),
  );
  const wanted = found.filter(({ targetBranch }) => targetBranch === query.get('target_branch'));
  // A branch of a fork may have the same name.
  const foreign = mergeRequest(world, { repository: name, number: 999, title: 'Theirs', updatedAt: '' });
  const all = [
    { ...foreign, source_project_id: FORK_ID },
    ...wanted.map((change) => mergeRequest(world, change)),
  ];
  return { body: query.get('state') === 'opened' ? all : [] };
}

function create(world: FakeWorld, project: FakeRepository, request: FakeRequest): FakeResponse {
  const body: unknown = JSON.parse(request.body);
  const title = jsonText(body, 'title') ?? '';
  const target = jsonAt(body, 'target_project_id');
  const upstream =
    target === undefined
      ? project
      : world.repositories.find(
          (each) => repositoryId(world, each) === target && each.name === project.forkOf,
        );
  if (title.length > 255) {
    return { status: 400, body: { message: { title: ['is too long (maximum is 255 characters)'] } } };
  }
  if (!upstream) {
    return { status: 422, body: { message: { target_project: ['is no relative of the source project'] } } };
  }
  const opened = openIn(world, upstream, {
    repository: upstream.name,
    ...(upstream !== project && { fork: project.name }),
    sourceBranch: jsonText(body, 'source_branch') ?? '',
    targetBranch: jsonText(body, 'target_branch') ?? '',
    title: title.replace(/^Draft: /, ''),
    body: jsonText(body, 'description') ?? '',
    draft: title.startsWith('Draft: '),
  });
  return typeof opened === 'string'
    ? { status: opened === 'exists' ? 409 : 422, body: { message: message(opened) } }
    : { status: 201, body: mergeRequest(world, opened) };
}

function message(refusal: FakeRefusal): unknown {
  switch (refusal) {
    case 'exists':
      return ['Another open merge request already exists for this source branch: !5'];
    case 'no_source':
      return { source_branch: ['does not exist'] };
    case 'no_target':
      return { target_branch: ['does not exist'] };
    case 'nothing_new':
      return ["You can't use same project/branch for source and target"];
  }
}

function mergeRequest(world: FakeWorld, change: FakeChangeRequest) {
  const idOf = (name: string): number | null => {
    const found = repositoryIn(world, name);
    return found ? repositoryId(world, found) : null;
  };
  return {
    iid: change.number,
    state: 'opened',
    title: change.title,
    web_url: pageOf(change),
    source_project_id: idOf(change.fork ?? change.repository),
    target_project_id: idOf(change.repository),
  };
}
