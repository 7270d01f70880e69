import { execute, type GraphQLError, type GraphQLSchema, Kind, parse, validate } from 'graphql';
import { answerFollowed } from './fake-gitlab.followed.js';
import { answerForks } from './fake-gitlab.forks.js';
import { gitlabGraph } from './fake-gitlab.graph.js';
import { answerLists } from './fake-gitlab.lists.js';
import { repositoryId } from './fake-lists.js';
import { answerProjects } from './fake-gitlab.projects.js';
import { gitlabSchema } from './schemas/fake-gitlab.schema.js';
import { answerRenewal } from './fake-oauth.js';
import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';
import type { FakeChangeRequest, FakeWorld } from './fake-world.js';

export interface FakeGitlabOptions {
  latencyMs?: number;
  port?: number;
  /** Awaited before each answer. */
  gate?: (request: FakeRequest) => Promise<void>;
  /** A server of before the discussion counters: answers them with GitLab's own error. */
  old?: boolean;
}

/**
 * A GitLab on loopback: GraphQL at any path that ends in `/graphql`, REST below any `/v4/`. The world is read at
 * each request, so a test may change it.
 */
export async function startFakeGitlab(
  world: FakeWorld,
  options: FakeGitlabOptions = {},
): Promise<FakeServer> {
  const schema = gitlabSchema({ discussionCounts: !options.old });
  const reads = new Map<FakeChangeRequest, number>();
  return FakeServer.start(async (request) => {
    await options.gate?.(request);
    const renewed = answerRenewal(world, request, 'gitlab');
    if (renewed) {
      return renewed;
    }
    const token = credentials(request);
    if (request.path.endsWith('/graphql')) {
      if (token !== undefined && token !== world.token) {
        return { status: 401, body: { errors: [{ message: 'Invalid token' }] } };
      }
      return answerGraphql(schema, gitlabGraph(world, token !== undefined, reads), request);
    }
    if (token !== world.token) {
      return { status: 401, body: { message: '401 Unauthorized' } };
    }
    return answerRest(world, request);
  }, options);
}

function credentials(request: FakeRequest): string | undefined {
  const bearer = /^Bearer (.+)$/i.exec(request.headers['authorization'] ?? '')?.[1];
  return bearer ?? request.headers['private-token'];
}

async function answerGraphql(
  schema: GraphQLSchema,
  rootValue: unknown,
  request: FakeRequest,
): Promise<FakeResponse> {
  const { query, variables } = readQuery(request.body);
  const document = parse(query);
  const invalid = validate(schema, document);
  if (invalid.length > 0) {
    return { body: { errors: invalid.map(asGitlabError) } };
  }
  const result = await execute({ schema, document, rootValue, variableValues: variables });
  return { body: result };
}

function readQuery(body: string): { query: string; variables: Record<string, unknown> } {
  const parsed: unknown = JSON.parse(body);
  if (
    typeof parsed !== 'object' ||
    parsed === null ||
    !('query' in parsed) ||
    typeof parsed.query !== 'string'
  ) {
    throw new Error('A GraphQL request needs a query.');
  }
  const variables = 'variables' in parsed && typeof parsed.variables === 'object' ? parsed.variables : null;
  return { query: parsed.query, variables: { ...variables } };
}

/** GitLab's GraphQL server words its validation errors differently from graphql-js. */
function asGitlabError(error: GraphQLError) {
  const node = error.nodes?.[0];
  const typeName = /on type "(\w+)"/.exec(error.message)?.[1];
  if (node?.kind !== Kind.FIELD || typeName === undefined) {
    return { message: error.message, locations: error.locations };
  }
  const fieldName = node.name.value;
  return {
    message: `Field '${fieldName}' doesn't exist on type '${typeName}'`,
    locations: error.locations,
    extensions: { code: 'undefinedField', typeName, fieldName },
  };
}

function answerRest(world: FakeWorld, request: FakeRequest): FakeResponse {
  const asked = /\/v4(\/.*)$/.exec(request.path)?.[1] ?? '';
  const path = withName(world, asked);
  switch (path) {
    case '/user':
      return {
        body: {
          id: Number(world.user.id),
          username: world.user.login,
          name: world.user.name,
          email: world.user.email,
          state: 'active',
          organization: '',
          avatar_url: `https://gitlab.example/uploads/${world.user.login}.png`,
        },
      };
    case '/issues':
      return listIssues(world, request.query);
    case '/merge_requests':
      return listMergeRequests(world, request.query);
    default:
      return (
        answerMoved(world, request, asked) ??
        answerForks(world, request, path) ??
        answerLists(world, request, path) ??
        answerProjects(world, request, path) ??
        answerFollowed(world, request, path) ?? { status: 404, body: { error: '404 Not Found' } }
      );
  }
}

/** Projects are asked for by their ids, too. */
function withName(world: FakeWorld, path: string): string {
  return path.replace(/(?<=^\/projects\/)\d+(?=\/|$)/, (id) => {
    const found = world.repositories.find((each) => String(repositoryId(world, each)) === id);
    return found ? encodeURIComponent(found.name) : id;
  });
}

/** Of a project by the path that it had before it was moved; null for every other path. */
function answerMoved(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [, place = '', rest = ''] = /^\/projects\/([^/]+)(.*)$/.exec(path) ?? [];
  const moved = world.repositories.find(({ formerName }) => formerName === decodeURIComponent(place));
  if (!moved) {
    return null;
  }
  const root = request.path.slice(0, -path.length);
  const location = `${root}/projects/${repositoryId(world, moved)}${rest}?${request.query.toString()}`;
  return request.method === 'GET'
    ? { status: 301, headers: { location } }
    : { status: 405, body: { message: 'Non GET methods are not allowed for moved projects' } };
}

/** The statuses that it answers with are those from before it looks again. */
function listMergeRequests(world: FakeWorld, query: URLSearchParams): FakeResponse {
  const mine = query.get('scope') === 'created_by_me' && query.get('state') === 'opened';
  const listed = mine ? world.changeRequests.slice(0, Number(query.get('per_page') ?? 20)) : [];
  if (query.get('with_merge_status_recheck') === 'true') {
    listed.forEach((change) => Object.assign(change, { isUnchecked: false }));
  }
  return { body: listed.map(({ number }) => ({ iid: number, merge_status: 'unchecked' })) };
}

function listIssues(world: FakeWorld, query: URLSearchParams): FakeResponse {
  // GitLab lists what the user created unless scope=assigned_to_me is set: nothing in this world.
  const mine = query.get('scope') === 'assigned_to_me' && query.get('state') !== 'closed' ? world.issues : [];
  const active = mine.filter(
    (issue) => !world.repositories.find(({ name }) => name === issue.repository)?.archived,
  );
  const newestFirst = query.get('order_by') === 'updated_at' && query.get('sort') !== 'asc';
  const sorted = active.toSorted((a, b) => (newestFirst ? -1 : 1) * a.updatedAt.localeCompare(b.updatedAt));
  const perPage = Number(query.get('per_page') ?? 20);
  const page = Number(query.get('page') ?? 1);
  const shown = sorted.slice((page - 1) * perPage, page * perPage);
  return {
    headers: {
      'x-page': String(page),
      'x-next-page': page * perPage < sorted.length ? String(page + 1) : '',
    },
    body: shown.map((issue) => ({
      id: 1000 + issue.number,
      iid: issue.number,
      title: issue.title,
      state: 'opened',
      updated_at: issue.updatedAt,
      issue_type: 'issue',
      references: {
        short: `#${issue.number}`,
        relative: `${issue.repository}#${issue.number}`,
        full: `${issue.repository}#${issue.number}`,
      },
    })),
  };
}
