import { defaultBranchOf, repositoryIn } from './fake-change-requests.js';
import { answerForks } from './fake-bitbucket.forks.js';
import { answerFollowed, commentsOf, failure, statusesOf } from './fake-bitbucket.followed.js';
import { answerPulls } from './fake-bitbucket.pulls.js';
import { changeIn, commitNamed, isOpen } from './fake-followed.js';
import { branchesOf, contains, isOwnedByUser, newestFirst, ownersIn, repositoryId } from './fake-lists.js';
import { memberOf } from './fake-members.js';
import { answerRenewal } from './fake-oauth.js';
import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';
import { partialResponse } from './partial-response.js';

export interface FakeBitbucketOptions {
  latencyMs?: number;
  port?: number;
  /** Every answer waits for it: lets a test hold requests back and watch which ones come without an answer. */
  gate?: (request: FakeRequest) => Promise<void>;
  /** Sent with every answer (rate-limit headers). */
  headers?: Record<string, string>;
  /** The newest commit of a change request's source branch; constant by default. */
  headOf?: (change: FakeChangeRequest) => string;
}

interface Context {
  world: FakeWorld;
  options: FakeBitbucketOptions;
  origin: string;
  /** Change requests whose conflicts were asked for before (`later` becomes `yes`). */
  seen: Set<FakeChangeRequest>;
}

type Route = (context: Context, request: FakeRequest, parameters: string[]) => FakeResponse;

const COLLEAGUE = { uuid: '{colleague}', display_name: 'A colleague' };

const ROUTES: [RegExp, Route][] = [
  [/^\/user$/, (context) => ({ body: account(context.world) })],
  [/^\/user\/workspaces$/, listWorkspaces],
  [/^\/workspaces\/([^/]+)\/pullrequests\/([^/]+)$/, listPullRequests],
  [/^\/workspaces\/([^/]+)\/permissions\/repositories\/([^/]+)$/, listPermissions],
  [/^\/repositories\/([^/]+)$/, listRepositories],
  [/^\/repositories\/([^/]+\/[^/]+)\/refs\/branches$/, listBranches],
  [/^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)\/conflicts$/, redirectToConflicts],
  [/^\/repositories\/([^/]+\/[^/]+)\/file-conflicts\/(\d+)\.\.[^/]+$/, listConflicts],
  [/^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)\/statuses$/, listStatuses],
  [/^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)\/comments$/, listComments],
  [/^\/repositories\/([^/]+\/[^/]+)\/src\/HEAD\/(.*)$/, listFolder],
  // Removed by CHANGE-2770 and before; they must not be used again.
  [/^\/(workspaces|repositories|user\/permissions\/\w+|pullrequests\/[^/]+)$/, gone],
];

/** Bitbucket Cloud's REST API below `/2.0`, as far as the adapter uses it, over a world named `workspace/slug`. */
export async function startFakeBitbucket(
  world: FakeWorld,
  options: FakeBitbucketOptions = {},
): Promise<FakeServer> {
  const context: Context = { world, options, origin: '', seen: new Set() };
  const server = await FakeServer.start(async (request) => {
    await options.gate?.(request);
    const answer = answerRenewal(world, request, 'bitbucket') ?? respond(context, request);
    return { ...answer, headers: { ...options.headers, ...answer.headers } };
  }, options);
  context.origin = server.origin;
  return server;
}

function respond(context: Context, request: FakeRequest): FakeResponse {
  if (!isAuthorized(context.world.token, request.headers['authorization'])) {
    return failure(401, 'Token is invalid, expired, or not supported for this endpoint.');
  }
  const path = request.path.startsWith('/2.0/') ? request.path.slice('/2.0'.length) : '';
  const forks = answerForks(context.world, request, path);
  if (forks) {
    return withFields(request, forks);
  }
  for (const [pattern, route] of ROUTES) {
    const match = request.method === 'POST' ? null : pattern.exec(path);
    if (match) {
      return withFields(request, route(context, request, match.slice(1).map(decodeURIComponent)));
    }
  }
  const pulls = answerFollowed(context.world, request, path) ?? answerPulls(context.world, request, path);
  return withFields(request, pulls ?? failure(404, 'Resource not found'));
}

function withFields({ query }: FakeRequest, answer: FakeResponse): FakeResponse {
  const fields = answer.status === undefined ? query.get('fields') : null;
  return { ...answer, body: partialResponse(answer.body, fields) };
}

/** `email:api_token` is Basic; everything else is a Bearer token. */
function isAuthorized(token: string, header: string | undefined): boolean {
  return (
    header === (token.includes(':') ? `Basic ${Buffer.from(token).toString('base64')}` : `Bearer ${token}`)
  );
}

function gone(): FakeResponse {
  return failure(410, 'CHANGE-2770 - Functionality has been deprecated');
}

function account({ user }: FakeWorld): Record<string, unknown> {
  return {
    type: 'user',
    uuid: `{${user.id}}`,
    account_id: user.id,
    username: user.login,
    nickname: user.login,
    display_name: user.name,
    links: { avatar: { href: `https://avatars.example.com/${user.login}` } },
  };
}

function page(context: Context, request: FakeRequest, all: unknown[]): FakeResponse {
  const size = Number(request.query.get('pagelen') ?? 10);
  const number = Number(request.query.get('page') ?? 1);
  const next = new URL(`${context.origin}${request.path}?${request.query.toString()}`);
  next.searchParams.set('page', String(number + 1));
  return {
    body: {
      pagelen: size,
      page: number,
      size: all.length,
      values: all.slice((number - 1) * size, number * size),
      ...(all.length > number * size ? { next: next.href } : {}),
    },
  };
}

function listWorkspaces(context: Context, request: FakeRequest): FakeResponse {
  const spaces = ownersIn(context.world).map((slug) => ({ type: 'workspace_base', slug }));
  return page(
    context,
    request,
    spaces.map((workspace) => ({ type: 'workspace_access', workspace })),
  );
}

function listPermissions(context: Context, request: FakeRequest, [workspace, slug]: string[]): FakeResponse {
  const { world } = context;
  if (world.isNoAdministrator) {
    return failure(403, 'You must be an admin of this repository.');
  }
  const [, uuid] = /^user\.uuid="\{(.+)\}"$/.exec(request.query.get('q') ?? '') ?? [];
  const { permission } = memberOf(
    world,
    `${workspace}/${slug}`,
    ({ id, login }) => uuid === id || uuid === login,
  );
  const user = { type: 'user', uuid: `{${uuid}}` };
  const found = { type: 'repository_permission', user, permission };
  return page(context, request, permission === 'none' ? [] : [found]);
}

function listPullRequests(context: Context, request: FakeRequest, [workspace, user]: string[]): FakeResponse {
  const { world } = context;
  const mine = user === `{${world.user.id}}` && request.query.get('state') === 'OPEN';
  const changes = world.changeRequests.filter(
    (change) => mine && isOpen(change) && workspaceOf(change.repository) === workspace,
  );
  return page(
    context,
    request,
    changes
      .toSorted((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt))
      .map((change) => pullRequest(context, change)),
  );
}

function pullRequest(context: Context, change: FakeChangeRequest): Record<string, unknown> {
  const unresolved = change.unresolved ?? 'none';
  return {
    type: 'pullrequest',
    id: change.number,
    title: change.title,
    state: 'OPEN',
    draft: change.draft ?? false,
    updated_on: change.updatedAt,
    comment_count: comments(context.world, change).length,
    task_count: unresolved === 'task' ? 1 : 0,
    source: { commit: { hash: context.options.headOf?.(change) ?? hash('source', change) } },
    destination: {
      commit: { hash: hash('destination', change) },
      repository: { full_name: change.repository },
    },
    participants: [
      { user: COLLEAGUE, state: unresolved === 'changes_requested' ? 'changes_requested' : 'approved' },
      { user: account(context.world), state: null },
    ],
  };
}

function hash(side: string, change: FakeChangeRequest): string {
  return commitNamed(`${side} ${change.repository} ${change.number}`).slice(0, 12);
}

function listRepositories(context: Context, request: FakeRequest, [workspace]: string[]): FakeResponse {
  const { world } = context;
  const role = request.query.get('role');
  const inWorkspace = world.repositories.filter(({ name }) => workspaceOf(name) === workspace);
  if (inWorkspace.length === 0) {
    return failure(404, `No workspace with identifier '${workspace}'.`);
  }
  const visible = inWorkspace.filter(
    (repository) =>
      (role !== 'contributor' || repository.writable !== false) &&
      isNamed(request, repository.name.split('/')[1] ?? ''),
  );
  return page(
    context,
    request,
    newestFirst(visible).map((repository) => ({
      type: 'repository',
      uuid: `{${repositoryId(world, repository)}}`,
      full_name: repository.name,
      slug: repository.name.split('/')[1],
      is_private: !(repository.isPublic ?? false),
      owner: { type: isOwnedByUser(world, repository) ? 'user' : 'team' },
      updated_on: repository.activeAt,
      mainbranch: repository.empty ? null : { type: 'branch', name: defaultBranchOf(repository) },
      ...(repository.fork ? { parent: { type: 'repository', full_name: 'upstream/original' } } : {}),
    })),
  );
}

function listBranches(context: Context, request: FakeRequest, [name = '']: string[]): FakeResponse {
  const repository = repositoryIn(context.world, name);
  if (!repository) {
    return failure(404, `Repository ${name} not found`);
  }
  const found = branchesOf(repository).filter((branch) => contains(branch.name, namePart(request)));
  return page(
    context,
    request,
    found.map(({ name: branch, commit, committedAt }) => ({
      type: 'branch',
      name: branch,
      target: { type: 'commit', hash: commit, date: committedAt },
    })),
  );
}

/** The only filter that is imitated: `name ~ "part"`, with Bitbucket's escapes. */
function isNamed(request: FakeRequest, name: string): boolean {
  const [, slug] = /^slug="(.+)"$/.exec(request.query.get('q') ?? '') ?? [];
  return slug === undefined ? contains(name, namePart(request)) : slug === name;
}

function namePart(request: FakeRequest): string {
  const filter = request.query.get('q') ?? 'name ~ ""';
  const [, part] = /^name ~ "((?:[^"\\]|\\.)*)"$/.exec(filter) ?? [];
  if (part === undefined) {
    throw new Error(`The fake does not know the filter ${filter}`);
  }
  return part.replaceAll(/\\(.)/g, '$1');
}

function redirectToConflicts(context: Context, _: FakeRequest, parameters: string[]): FakeResponse {
  return withChange(context, parameters, (change) => {
    const first = !context.seen.has(change);
    context.seen.add(change);
    if (change.conflicts === 'unknown' || (change.conflicts === 'later' && first)) {
      return failure(403, 'This resource does not support authentication using the provided token.');
    }
    const spec = `${change.number}..${hash('destination', change)}`;
    const location = `${context.origin}/2.0/repositories/${change.repository}/file-conflicts/${spec}?pagelen=1`;
    return { status: 302, headers: { location } };
  });
}

function listConflicts(context: Context, request: FakeRequest, parameters: string[]): FakeResponse {
  return withChange(context, parameters, (change) => {
    const conflicting = change.conflicts === 'yes' || change.conflicts === 'later';
    return page(context, request, conflicting ? [{ path: 'package.json', scenario: 'content' }] : []);
  });
}

function listStatuses(context: Context, request: FakeRequest, parameters: string[]): FakeResponse {
  return withChange(context, parameters, (change) => {
    if (asksFor(request, 'values.url')) {
      return page(context, request, statusesOf(change));
    }
    const states = {
      none: [],
      passing: ['FAILED', 'SUCCESSFUL'],
      pending: ['FAILED', 'INPROGRESS'],
      failing: ['SUCCESSFUL', 'FAILED'],
      error: ['FAILED'],
    }[change.checks ?? 'none'];
    // Every run of the same check stays listed; only the newest one says how it stands.
    const runs = states.map((state, index) => ({
      key: 'ci',
      state,
      updated_on: `2026-01-0${index + 1}T00:00:00+00:00`,
    }));
    return page(context, request, runs);
  });
}

function listComments(context: Context, request: FakeRequest, parameters: string[]): FakeResponse {
  return withChange(context, parameters, (change) =>
    page(
      context,
      request,
      asksFor(request, 'values.content.raw')
        ? commentsOf(context.world, change, request)
        : comments(context.world, change),
    ),
  );
}

/** What follows change requests asks for more than what finds work. */
function asksFor({ query }: FakeRequest, field: string): boolean {
  return query.get('fields')?.split(',').includes(field) ?? false;
}

/** Conversation that asks for nothing, and one open review comment where the world says so. */
function comments(world: FakeWorld, change: FakeChangeRequest): Record<string, unknown>[] {
  const quiet = [
    { id: 1, deleted: false, pending: false, user: COLLEAGUE },
    {
      id: 2,
      deleted: false,
      pending: false,
      user: COLLEAGUE,
      inline: { path: 'a.ts' },
      resolution: { type: 'comment_resolution' },
    },
    { id: 3, deleted: false, pending: false, user: { uuid: `{${world.user.id}}` }, inline: { path: 'a.ts' } },
  ];
  const open = { id: 4, deleted: false, pending: false, user: COLLEAGUE, inline: { path: 'b.ts' } };
  return change.unresolved === 'thread' ? [...quiet, open] : quiet;
}

function listFolder(context: Context, request: FakeRequest, [name, folder = '']: string[]): FakeResponse {
  const repository = context.world.repositories.find((candidate) => candidate.name === name);
  const entries = repository && !repository.empty ? folderEntries(repository, folder.replace(/\/$/, '')) : [];
  return entries.length === 0 ? failure(404, 'No such file or directory') : page(context, request, entries);
}

function folderEntries(repository: FakeRepository, folder: string): Record<string, unknown>[] {
  const { microagents = [], skills = [], rootEntries = ['README.md', 'src'] } = repository;
  const byFolder: Record<string, string[]> = {
    '': [...rootEntries, ...(microagents.length + skills.length > 0 ? ['.openhands'] : [])],
    '.openhands/microagents': microagents,
    '.openhands/skills': skills,
  };
  return (byFolder[folder] ?? []).map((entry) => ({
    type: entry === '.openhands' || !entry.includes('.') ? 'commit_directory' : 'commit_file',
    path: folder === '' ? entry : `${folder}/${entry}`,
  }));
}

function withChange(
  { world }: Context,
  [repository = '', number]: string[],
  answer: (change: FakeChangeRequest) => FakeResponse,
): FakeResponse {
  const found = changeIn(world, repository, Number(number));
  return found ? answer(found) : failure(404, 'Resource not found');
}

function workspaceOf(name: string): string {
  return name.split('/')[0] ?? '';
}
