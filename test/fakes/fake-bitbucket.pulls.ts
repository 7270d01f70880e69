import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import {
  defaultBranchOf,
  type FakeRefusal,
  openFrom,
  openIn,
  pageOf,
  repositoryIn,
} from './fake-change-requests.js';
import { failure } from './fake-bitbucket.followed.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

const FILTER =
  /^state = "OPEN" AND source\.repository\.full_name = "(.+)" AND source\.branch\.name = "(.+)" AND destination\.branch\.name = "(.+)"$/;

/** One repository, and its pull requests; null for every other path (below `/2.0`). */
export function answerPulls(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [matched, name, pulls] = /^\/repositories\/([^/]+\/[^/]+)(\/pullrequests)?$/.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const repository = repositoryIn(world, decodeURIComponent(name ?? ''));
  if (!repository) {
    return failure(404, `Repository ${name} not found`);
  }
  if (pulls === undefined) {
    return {
      body: {
        full_name: repository.name,
        mainbranch: { name: defaultBranchOf(repository) },
        fork_policy: repository.forking === 'forbidden' ? 'no_forks' : 'allow_forks',
      },
    };
  }
  return request.method === 'POST' ? create(world, repository, request) : list(world, repository, request);
}

function list(world: FakeWorld, { name }: FakeRepository, { query }: FakeRequest): FakeResponse {
  const [, source, branch = '', target] = FILTER.exec(query.get('q') ?? '') ?? [];
  const fork = source === name ? undefined : source;
  const found = openFrom(world, name, branch, fork).filter(({ targetBranch }) => targetBranch === target);
  return { body: { values: found.map(pullRequest) } };
}

function create(world: FakeWorld, repository: FakeRepository, request: FakeRequest): FakeResponse {
  const body: unknown = JSON.parse(request.body);
  const fork = jsonText(body, 'source', 'repository', 'full_name');
  const opening = {
    repository: repository.name,
    ...(fork !== null && { fork }),
    sourceBranch: jsonText(body, 'source', 'branch', 'name') ?? '',
    targetBranch: jsonText(body, 'destination', 'branch', 'name') ?? '',
    title: jsonText(body, 'title') ?? '',
    body: jsonText(body, 'description') ?? '',
    draft: jsonAt(body, 'draft') === true,
  };
  const opened = openIn(world, repository, opening);
  if (opened === 'exists') {
    // No error here: the open one is written over.
    const [first] = openFrom(world, repository.name, opening.sourceBranch, opening.fork).filter(
      ({ targetBranch }) => targetBranch === opening.targetBranch,
    );
    return { status: 201, body: first && pullRequest(Object.assign(first, opening)) };
  }
  return typeof opened === 'string'
    ? { status: 400, body: { type: 'error', error: refusal(opened) } }
    : { status: 201, body: pullRequest(opened) };
}

function refusal(why: Exclude<FakeRefusal, 'exists'>) {
  switch (why) {
    case 'no_source':
      return { message: 'Bad request', fields: { source: ['branch not found'] } };
    case 'no_target':
      return { message: 'Bad request', fields: { destination: ['branch not found'] } };
    case 'nothing_new':
      return { message: 'There are no changes to be pulled' };
  }
}

function pullRequest(change: FakeChangeRequest) {
  return { id: change.number, state: 'OPEN', title: change.title, links: { html: { href: pageOf(change) } } };
}
