import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import {
  defaultBranchOf,
  type FakeRefusal,
  openFrom,
  openIn,
  pageOf,
  repositoryIn,
} from './fake-change-requests.js';
import { failure } from './fake-bitbucket-data-center.lists.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

const PATH =
  /^\/api\/latest\/projects\/([^/]+)\/repos\/([^/]+)\/(pull-requests|default-branch|branches\/default)$/;

/** Pull requests and the default branch of a repository; null for every other path (below `/rest`). */
export function answerPulls(
  world: FakeWorld,
  request: FakeRequest,
  path: string,
  options: { old?: boolean },
): FakeResponse | null {
  const [matched, project, slug, resource] = PATH.exec(path) ?? [];
  if (matched === undefined || (options.old === true && resource === 'default-branch')) {
    return null;
  }
  const repository = repositoryIn(
    world,
    `${decodeURIComponent(project ?? '')}/${decodeURIComponent(slug ?? '')}`,
  );
  if (!repository) {
    return failure(404, `Repository ${project}/${slug} does not exist.`);
  }
  if (resource !== 'pull-requests') {
    const branch = defaultBranchOf(repository);
    return { body: { id: `refs/heads/${branch}`, displayId: branch, type: 'BRANCH' } };
  }
  return request.method === 'POST' ? create(world, repository, request) : list(world, repository, request);
}

function list(world: FakeWorld, repository: FakeRepository, { query }: FakeRequest): FakeResponse {
  const { name } = repository;
  const outgoing = query.get('direction') === 'OUTGOING' && query.get('state') === 'OPEN';
  const branch = (query.get('at') ?? '').replace(/^refs\/heads\//, '');
  const { forkOf } = repository;
  const found = [...openFrom(world, name, branch), ...(forkOf ? openFrom(world, forkOf, branch, name) : [])];
  return { body: { isLastPage: true, values: outgoing ? found.map(pullRequest) : [] } };
}

function create(world: FakeWorld, repository: FakeRepository, request: FakeRequest): FakeResponse {
  if (request.headers['x-atlassian-token'] !== 'no-check') {
    return failure(403, 'XSRF check failed');
  }
  const body: unknown = JSON.parse(request.body);
  const branchOf = (ref: string): string => (jsonText(body, ref, 'id') ?? '').replace(/^refs\/heads\//, '');
  const from = ['project', 'slug'].map((part) =>
    part === 'slug'
      ? jsonText(body, 'fromRef', 'repository', 'slug')
      : jsonText(body, 'fromRef', 'repository', 'project', 'key'),
  );
  const source = from.join('/');
  const opened = openIn(world, repository, {
    repository: repository.name,
    ...(source.toLowerCase() !== repository.name.toLowerCase() && { fork: source }),
    sourceBranch: branchOf('fromRef'),
    targetBranch: branchOf('toRef'),
    title: jsonText(body, 'title') ?? '',
    body: jsonText(body, 'description') ?? '',
    draft: jsonAt(body, 'draft') === true,
  });
  return typeof opened === 'string' ? refusal(opened) : { status: 201, body: pullRequest(opened) };
}

function refusal(why: FakeRefusal): FakeResponse {
  switch (why) {
    case 'exists':
      return failure(409, 'Only one pull request may be open for a given source and target branch');
    case 'no_source':
      return failure(404, 'The source branch does not exist');
    case 'no_target':
      return failure(404, 'The target branch does not exist');
    case 'nothing_new':
      return failure(409, 'The branches are already up-to-date');
  }
}

function pullRequest(change: FakeChangeRequest) {
  const [key, slug] = change.repository.split('/');
  return {
    id: change.number,
    state: 'OPEN',
    title: change.title,
    toRef: { id: `refs/heads/${change.targetBranch}`, repository: { slug, project: { key } } },
    links: { self: [{ href: pageOf(change) }] },
  };
}
