import { GraphQLError } from 'graphql';
import { jsonText } from '@slipway/common/json-access.js';
import { pageOf, repositoryIn } from './fake-change-requests.js';
import { addComment, addReply, changeIn, checksOf, followedOf, rootOf, STRANGER } from './fake-followed.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeCheck, FakeComment, FakeWorkflow, FakeWorld } from './fake-world.js';

export interface Window {
  first?: number;
  last?: number;
}
type Connection = (all: unknown[], window: Window) => unknown;

/** The members of a pull request that say how it stands, for resolvers of graphql-js. */
export function followedMembers(world: FakeWorld, change: FakeChangeRequest, connection: Connection) {
  const { state, head, workflows, comments, approvedBy, changesRequestedBy } = followedOf(change);
  const contexts = checksOf(change).map((check) =>
    world.isFineGrained && !check.isStatus ? forbidden() : context(change, check),
  );
  const roots = comments.filter(({ kind, id, root }) => kind === 'thread' && id === root);
  const opinions = [
    ...approvedBy.map((login) => ({ login, state: 'APPROVED' })),
    ...changesRequestedBy.map((login) => ({ login, state: 'CHANGES_REQUESTED' })),
  ];
  const ofKind = (kind: FakeComment['kind']) =>
    comments.filter((comment) => comment.kind === kind).map((comment) => commentNode(world, change, comment));
  return {
    state: state.toUpperCase(),
    url: pageOf(change),
    headRefOid: head,
    reviewDecision: null,
    latestOpinionatedReviews: ({ writersOnly, ...args }: Window & { writersOnly: boolean }) =>
      connection(writersOnly ? opinions.filter(({ login }) => login !== STRANGER) : opinions, args),
    statusCheckRollup:
      contexts.length === 0
        ? null
        : { state: rollupOf(change), contexts: (args: Window) => connection(contexts, args) },
    commits: (args: Window) =>
      connection(
        [
          {
            commit: {
              checkSuites: (page: Window) =>
                world.isFineGrained
                  ? forbidden()
                  : connection(workflows.filter((run) => run.head === head).map(suite), page),
            },
          },
        ],
        args,
      ),
    reviewThreads: (args: Window) =>
      connection(
        roots.map((root) => ({
          isResolved: root.resolved,
          path: root.path,
          line: root.line,
          originalLine: root.line,
          comments: (window: Window) =>
            connection(
              comments
                .filter(({ kind, root: first }) => kind === 'thread' && first === root.id)
                .map((comment) => commentNode(world, change, comment)),
              window,
            ),
        })),
        args,
      ),
    comments: (args: Window) => connection(ofKind('comment'), args),
    reviews: (args: Window) => connection(ofKind('review'), args),
  };
}

function commentNode(world: FakeWorld, change: FakeChangeRequest, comment: FakeComment) {
  return {
    fullDatabaseId: comment.id,
    databaseId: comment.id,
    author: { __typename: comment.isBot ? 'Bot' : 'User', login: comment.author },
    authorAssociation: comment.mayWrite ? 'COLLABORATOR' : 'NONE',
    authorCanPushToRepository: comment.mayWrite,
    viewerDidAuthor: comment.author === world.user.login,
    isMinimized: false,
    body: comment.body,
    createdAt: comment.createdAt,
    url: `${pageOf(change)}#${comment.id}`,
    state: comment.kind === 'review' ? 'COMMENTED' : 'SUBMITTED',
  };
}

/** The answer has null in its place, with this error beside it. */
function forbidden(): GraphQLError {
  const message = 'Resource not accessible by personal access token';
  return new GraphQLError(message, { extensions: { type: 'FORBIDDEN' } });
}

/** Sums up all checks. */
function rollupOf(change: FakeChangeRequest): string {
  const states = checksOf(change).map(({ state }) => state);
  return states.includes('failed') ? 'FAILURE' : states.includes('pending') ? 'PENDING' : 'SUCCESS';
}

/** Beside those of workflows there is one of each app that may report checks, and never has to. */
function suite({ id, name, conclusion }: FakeWorkflow) {
  return {
    __typename: 'CheckSuite',
    databaseId: id,
    status: conclusion === null ? 'IN_PROGRESS' : 'COMPLETED',
    conclusion,
    workflowRun: { url: `https://code.example/runs/${id}`, event: 'pull_request', workflow: { name } },
  };
}

const STATUS_STATES = { passed: 'SUCCESS', failed: 'FAILURE', pending: 'PENDING' };

function context(change: FakeChangeRequest, check: FakeCheck) {
  const url = `${pageOf(change)}/checks/${check.id}`;
  return check.isStatus
    ? {
        __typename: 'StatusContext',
        id: `SC_${check.id}`,
        context: check.name,
        state: STATUS_STATES[check.state],
        targetUrl: url,
      }
    : {
        __typename: 'CheckRun',
        databaseId: check.id,
        name: check.name,
        status: check.state === 'pending' ? 'IN_PROGRESS' : 'COMPLETED',
        conclusion: check.state === 'pending' ? null : STATUS_STATES[check.state],
        detailsUrl: url,
        checkSuite: { workflowRun: { event: 'pull_request', workflow: { name: 'CI' } } },
      };
}

const PATHS: readonly [string, RegExp][] = [
  ['check', /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+)\/check-runs\/(\d+)$/],
  ['log', /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+)\/actions\/jobs\/(\d+)\/logs$/],
  ['comment', /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/comments$/],
  ['reply', /^(?:\/api\/v3)?\/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)\/comments\/(\d+)\/replies$/],
];

/** Logs and comments over REST; null for every other address. Logs are in a storage, to which GitHub redirects. */
export function answerFollowed(world: FakeWorld, request: FakeRequest, storage: string): FakeResponse | null {
  for (const [kind, pattern] of PATHS) {
    const [path, name = '', first = '', second = ''] = pattern.exec(request.path) ?? [];
    if (path !== undefined) {
      const repository = repositoryIn(world, name)?.name ?? '';
      return kind === 'check' || kind === 'log'
        ? answerCheck(kind, findCheck(world, repository, Number(first)), storage)
        : write(world, changeIn(world, repository, Number(first)), Number(second), request.body);
    }
  }
  return null;
}

/** The log itself. */
export function answerStorage(world: FakeWorld, { path }: FakeRequest): FakeResponse | null {
  const [matched, id] = /^\/storage\/(\d+)$/.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const check = world.changeRequests
    .flatMap(({ followed }) => followed?.checks ?? [])
    .find((candidate) => candidate.id === Number(id));
  return { headers: { 'content-type': 'text/plain' }, body: check?.log ?? '' };
}

function findCheck(world: FakeWorld, repository: string, id: number): FakeCheck | undefined {
  return world.changeRequests
    .filter((change) => change.repository === repository)
    .flatMap((change) => followedOf(change).checks)
    .find((check) => check.id === id && !check.isStatus);
}

function answerCheck(kind: 'check' | 'log', check: FakeCheck | undefined, storage: string): FakeResponse {
  if (!check) {
    return { status: 404, body: { message: 'Not Found', status: '404' } };
  }
  return kind === 'log'
    ? { status: 302, headers: { location: `${storage}/storage/${check.id}` } }
    : {
        body: {
          id: check.id,
          name: check.name,
          app: { slug: 'github-actions' },
          output: { title: null, summary: null, text: null },
        },
      };
}

function write(
  world: FakeWorld,
  change: FakeChangeRequest | undefined,
  root: number,
  text: string,
): FakeResponse {
  const to = change && followedOf(change).comments.find(({ id }) => id === root);
  if (!change || (root !== 0 && to?.kind !== 'thread')) {
    return { status: 404, body: { message: 'Not Found', status: '404' } };
  }
  if (to && rootOf(change, to) !== to) {
    return { status: 422, body: { message: 'Validation Failed' } };
  }
  const body = jsonText(JSON.parse(text), 'body') ?? '';
  const { login } = world.user;
  const written = to ? addReply(change, to, login, body) : addComment(change, login, body);
  return { status: 201, body: { id: written.id, body } };
}
