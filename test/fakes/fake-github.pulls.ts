import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import {
  defaultBranchOf,
  type FakeRefusal,
  openFrom,
  openIn,
  pageOf,
  repositoryIn,
} from './fake-change-requests.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

const REPOSITORY_PATH = /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+?)(\/pulls)?$/;

/** Repositories and their pull requests over REST; null for every other address. */
export function answerPulls(world: FakeWorld, request: FakeRequest): FakeResponse | null {
  const [path, name, pulls] = REPOSITORY_PATH.exec(request.path) ?? [];
  if (path === undefined) {
    return null;
  }
  const repository = repositoryIn(world, decodeURIComponent(name ?? ''));
  if (!repository) {
    return { status: 404, body: { message: 'Not Found', status: '404' } };
  }
  if (pulls === undefined) {
    return {
      body: {
        full_name: repository.name,
        default_branch: defaultBranchOf(repository),
        permissions: { admin: false, push: repository.writable !== false, pull: true },
        allow_forking: repository.forking !== 'forbidden',
      },
    };
  }
  return request.method === 'POST' ? create(world, repository, request) : list(world, repository, request);
}

/** A branch stands for the others of its commit: https://github.com/octokit/octokit.js/issues/2056. */
function list(world: FakeWorld, { name, twins = [] }: FakeRepository, { query }: FakeRequest): FakeResponse {
  const [owner, branch = ''] = (query.get('head') ?? '').split(':');
  const fork = forkOwnedBy(world, name, owner ?? '')?.name;
  const isOwn = owner === name.split('/')[0];
  const branches = twins.find((each) => each.includes(branch)) ?? [branch];
  const found = branches.flatMap((each) =>
    isOwn || fork !== undefined ? openFrom(world, name, each, isOwn ? undefined : fork) : [],
  );
  const wanted = found.filter(({ targetBranch }) => targetBranch === query.get('base'));
  return { body: query.get('state') === 'open' ? wanted.map(pullRequest) : [] };
}

function create(world: FakeWorld, repository: FakeRepository, request: FakeRequest): FakeResponse {
  const body: unknown = JSON.parse(request.body);
  const [owner, branch] = (jsonText(body, 'head') ?? '').split(':');
  const fork = branch === undefined ? undefined : forkOwnedBy(world, repository.name, owner ?? '');
  const opened = openIn(world, repository, {
    repository: repository.name,
    sourceBranch: branch ?? owner ?? '',
    ...(branch !== undefined && { fork: fork?.name ?? 'nobody/none' }),
    targetBranch: jsonText(body, 'base') ?? '',
    title: jsonText(body, 'title') ?? '',
    body: jsonText(body, 'body') ?? '',
    draft: jsonAt(body, 'draft') === true,
  });
  return typeof opened === 'string'
    ? { status: 422, body: { message: 'Validation Failed', errors: [detail(opened, body)] } }
    : { status: 201, body: pullRequest(opened) };
}

function forkOwnedBy(world: FakeWorld, name: string, owner: string): FakeRepository | undefined {
  return world.repositories.find((each) => each.forkOf === name && each.name.startsWith(`${owner}/`));
}

function detail(refusal: FakeRefusal, body: unknown) {
  const head = jsonText(body, 'head') ?? '';
  const base = jsonText(body, 'base') ?? '';
  switch (refusal) {
    case 'no_source':
      return { resource: 'PullRequest', field: 'head', code: 'invalid' };
    case 'no_target':
      return { resource: 'PullRequest', field: 'base', code: 'invalid' };
    case 'exists':
      return {
        resource: 'PullRequest',
        code: 'custom',
        message: `A pull request already exists for octo:${head}.`,
      };
    case 'nothing_new':
      return { resource: 'PullRequest', code: 'custom', message: `No commits between ${base} and ${head}` };
  }
}

function pullRequest(change: FakeChangeRequest) {
  return {
    number: change.number,
    state: 'open',
    title: change.title,
    draft: change.draft ?? false,
    html_url: pageOf(change),
    head: { ref: change.sourceBranch },
  };
}
