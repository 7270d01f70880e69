import { answerFollowed } from './fake-bitbucket-data-center.followed.js';
import { answerForks } from './fake-bitbucket-data-center.forks.js';
import { answerLists, failure, page } from './fake-bitbucket-data-center.lists.js';
import { answerPulls } from './fake-bitbucket-data-center.pulls.js';
import { commitNamed, isOpen } from './fake-followed.js';
import { newestFirst } from './fake-lists.js';
import { memberOf } from './fake-members.js';
import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

export interface FakeBitbucketDataCenterOptions {
  latencyMs?: number;
  port?: number;
  /** Context path the server lives under, such as `/context`; none by default. */
  contextPath?: string;
  /** A server of before the resource for the default branch. */
  old?: boolean;
  /** Every answer waits for it: lets a test hold requests back and watch which ones come without an answer. */
  gate?: (request: FakeRequest) => Promise<void>;
}

interface Context {
  world: FakeWorld;
  old?: boolean;
  /** Change requests that were listed before (`later` becomes `yes`). */
  seen: Set<FakeChangeRequest>;
}

type Route = (context: Context, request: FakeRequest, parameters: string[]) => FakeResponse;

const ROUTES: [string, RegExp, Route][] = [
  [
    'GET',
    /^\/api\/1\.0\/application-properties$/,
    () => ({ body: { version: '9.4.0', displayName: 'Bitbucket' } }),
  ],
  ['GET', /^\/api\/latest\/users$/, listUsers],
  ['GET', /^\/api\/latest\/users\/([^/]+)$/, showUser],
  ['GET', /^\/api\/latest\/dashboard\/pull-requests$/, listPullRequests],
  ['GET', /^\/api\/latest\/profile\/recent\/repos$/, listRecentRepositories],
  ['POST', /^\/build-status\/latest\/commits\/stats$/, buildStats],
  ['GET', /^\/api\/latest\/projects\/([^/]+)\/repos\/([^/]+)\/browse(?:\/(.*))?$/, browse],
];

/** Bitbucket Data Center's REST API below `/rest`, as far as the adapter uses it, over a world named `PROJ/slug`. */
export async function startFakeBitbucketDataCenter(
  world: FakeWorld,
  options: FakeBitbucketDataCenterOptions = {},
): Promise<FakeServer> {
  const context: Context = { world, seen: new Set(), ...(options.old && { old: true }) };
  const prefix = `${options.contextPath ?? ''}/rest`;
  return await FakeServer.start(async (request) => {
    await options.gate?.(request);
    return request.path.startsWith(`${prefix}/`)
      ? respond(context, request, request.path.slice(prefix.length))
      : failure(404, 'Not found');
  }, options);
}

function respond(context: Context, request: FakeRequest, path: string): FakeResponse {
  if (request.headers['authorization'] !== `Bearer ${context.world.token}`) {
    return failure(401, 'Authentication failed. Please check your credentials and try again.');
  }
  const headers = { 'x-ausername': encodeURIComponent(context.world.user.login), 'x-auserid': '7' };
  for (const [method, pattern, route] of ROUTES) {
    const match = method === request.method ? pattern.exec(path) : null;
    if (match) {
      const parameters = match.slice(1).map((part: string | undefined) => decodeURIComponent(part ?? ''));
      return { ...route(context, request, parameters), headers };
    }
  }
  const other =
    answerForks(context.world, request, path) ??
    answerFollowed(context.world, request, path) ??
    answerLists(context.world, request, path) ??
    answerPulls(context.world, request, path, context);
  return other ? { ...other, headers } : failure(404, 'No such resource');
}

/** Those with a permission, by the beginning of their name. */
function listUsers({ world }: Context, { query }: FakeRequest): FakeResponse {
  const name = query.get('filter') ?? '';
  const repository = `${query.get('permission.projectKey')}/${query.get('permission.repositorySlug')}`;
  const { id, permission } = memberOf(world, repository, ({ login }) => login === name);
  const isWanted = query.get('permission') === 'REPO_WRITE' && permission === 'write';
  const longer = { id: 9_999, name: `${name}-other`, active: true };
  return { body: page(query, [longer, ...(isWanted ? [{ id: Number(id), name, active: true }] : [])]) };
}

function showUser({ world: { user } }: Context, request: FakeRequest, [slug]: string[]): FakeResponse {
  if (slug !== user.login.toLowerCase().replace('@', '_')) {
    return failure(404, 'No such user');
  }
  const size = request.query.get('avatarSize');
  return {
    body: {
      id: Number(user.id),
      name: user.login,
      slug,
      displayName: user.name,
      emailAddress: user.email,
      active: true,
      type: 'NORMAL',
      ...(size === null ? {} : { avatarUrl: `https://avatars.example.com/${user.login}?s=${size}` }),
    },
  };
}

function listPullRequests(context: Context, request: FakeRequest): FakeResponse {
  const { world } = context;
  const mine = request.query.get('role') === 'AUTHOR' && request.query.get('state') === 'OPEN';
  const changes = (mine ? world.changeRequests.filter(isOpen) : []).toSorted(
    (a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt),
  );
  const shown = changes.map((change) => pullRequest(context, change));
  return { body: page(request.query, shown) };
}

function pullRequest({ world, seen }: Context, change: FakeChangeRequest): Record<string, unknown> {
  const first = !seen.has(change);
  seen.add(change);
  const unknown = change.conflicts === 'unknown' || (change.conflicts === 'later' && first);
  const conflicting = change.conflicts === 'yes' || change.conflicts === 'later';
  const unresolved = change.unresolved ?? 'none';
  const repository = world.repositories.find(({ name }) => name === change.repository);
  return {
    id: change.number,
    version: 3,
    title: change.title,
    state: 'OPEN',
    open: true,
    draft: change.draft ?? false,
    createdDate: Date.parse(change.updatedAt) - 60_000,
    updatedDate: Date.parse(change.updatedAt),
    fromRef: { id: 'refs/heads/topic', latestCommit: commitOf(change) },
    toRef: {
      id: 'refs/heads/main',
      repository: repositoryBody(repository ?? { name: change.repository, activeAt: '' }),
    },
    reviewers: [
      {
        user: { name: 'colleague' },
        role: 'REVIEWER',
        status: unresolved === 'changes_requested' ? 'NEEDS_WORK' : 'UNAPPROVED',
      },
    ],
    properties: {
      // Threads and tasks are counted alike: an open blocker comment is an open task.
      openTaskCount: unresolved === 'task' || unresolved === 'thread' ? 1 : 0,
      resolvedTaskCount: 2,
      ...(unknown ? {} : { mergeResult: { outcome: conflicting ? 'CONFLICTED' : 'CLEAN', current: true } }),
    },
  };
}

function commitOf({ repository, number }: FakeChangeRequest): string {
  return commitNamed(`${repository} ${number}`);
}

function listRecentRepositories({ world }: Context, request: FakeRequest): FakeResponse {
  const writableOnly = request.query.get('permission') === 'REPO_WRITE';
  const visible = world.repositories.filter((repository) => !writableOnly || repository.writable !== false);
  return { body: page(request.query, newestFirst(visible).map(repositoryBody)) };
}

function repositoryBody({ name, archived, fork }: FakeRepository): Record<string, unknown> {
  const [key, slug] = name.split('/');
  return {
    slug,
    name: slug,
    state: 'AVAILABLE',
    archived: archived ?? false,
    project: { key, type: 'NORMAL' },
    ...(fork ? { origin: { slug: 'original', project: { key: 'UP' } } } : {}),
  };
}

function buildStats({ world }: Context, request: FakeRequest): FakeResponse {
  const asked: unknown = JSON.parse(request.body);
  if (!Array.isArray(asked) || request.headers['content-type'] !== 'application/json') {
    return failure(400, 'A list of commits is expected');
  }
  // Commits without builds are left out.
  const built = world.changeRequests.filter(
    (change) => asked.includes(commitOf(change)) && (change.checks ?? 'none') !== 'none',
  );
  const body: Record<string, unknown> = {};
  for (const change of built) {
    const failed = change.checks === 'failing' || change.checks === 'error' ? 1 : 0;
    const inProgress = change.checks === 'pending' ? 1 : 0;
    body[commitOf(change)] = { cancelled: 0, successful: 1, inProgress, failed, unknown: 0 };
  }
  return { body };
}

function browse(
  { world }: Context,
  request: FakeRequest,
  [project, slug, folder = '']: string[],
): FakeResponse {
  const repository = world.repositories.find(({ name }) => name === `${project}/${slug}`);
  const names = repository && !repository.empty ? folderNames(repository, folder) : [];
  if (names.length === 0) {
    return failure(404, 'The path does not exist at this revision');
  }
  const children = names.map((name) => ({
    path: { components: [name], name, toString: name },
    type: name === '.openhands' || !name.includes('.') ? 'DIRECTORY' : 'FILE',
  }));
  return {
    body: {
      path: { toString: folder },
      revision: 'refs/heads/main',
      children: page(request.query, children),
    },
  };
}

function folderNames(
  { microagents = [], skills = [], rootEntries }: FakeRepository,
  folder: string,
): string[] {
  const byFolder: Record<string, string[]> = {
    '': [
      ...(rootEntries ?? ['README.md', 'src']),
      ...(microagents.length + skills.length > 0 ? ['.openhands'] : []),
    ],
    '.openhands/microagents': microagents,
    '.openhands/skills': skills,
  };
  return byFolder[folder] ?? [];
}
