import { type DocumentNode, execute, Kind, parse, validate, visit } from 'graphql';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { answerApp, issuedFor, refusedToken, seenBy } from './fake-github.app.js';
import { answerFollowed, answerStorage } from './fake-github.followed.js';
import { answerForks } from './fake-github.forks.js';
import { githubGraph } from './fake-github.graph.js';
import { answerLists } from './fake-github.lists.js';
import { answerPulls } from './fake-github.pulls.js';
import { githubSchema } from './schemas/fake-github.schema.js';
import { answerRenewal } from './fake-oauth.js';
import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';
import type { FakeChangeRequest, FakeWorld } from './fake-world.js';

export interface FakeGithubOptions {
  latencyMs?: number;
  port?: number;
  /** Address to listen on; 127.0.0.1 by default. */
  host?: string;
  /** Every answer waits for it: lets a test hold requests back and watch which ones come without an answer. */
  gate?: (request: FakeRequest) => Promise<void>;
  /** Fields that this server is too old for. */
  missingFields?: readonly string[];
  /** Origin of the logs; its own by default. */
  storage?: string;
  /** Elements of a page beyond which reading it costs more than one query may. */
  resourceLimit?: number;
}

const GRAPHQL_PATHS: readonly string[] = ['/graphql', '/api/graphql'];
const USER_PATHS: readonly string[] = ['/user', '/api/v3/user'];

/**
 * A GitHub on loopback, at the addresses of github.com's API and of an Enterprise Server alike. GraphQL runs on
 * GitHub's own schema, so a wrong field or argument fails as it does there. The world is read at each request,
 * so a test may change it.
 */
export async function startFakeGithub(
  world: FakeWorld,
  options: FakeGithubOptions = {},
): Promise<FakeServer> {
  const reads = new Map<FakeChangeRequest, number>();
  const server = await FakeServer.start(async (request) => {
    await options.gate?.(request);
    const stored =
      answerStorage(world, request) ??
      answerRenewal(world, request, 'github') ??
      answerApp(world, request) ??
      refusedToken(world, request);
    if (stored) {
      return stored;
    }
    if (!/^(bearer|token) /i.test(request.headers['authorization'] ?? '')) {
      return failure(401, 'Requires authentication');
    }
    const issued = issuedFor(world, request);
    const seen = issued ? seenBy(world, issued) : world;
    if (!issued && request.headers['authorization']?.replace(/^\w+ /, '') !== world.token) {
      return failure(401, 'Bad credentials');
    }
    if (request.method === 'POST' && GRAPHQL_PATHS.includes(request.path)) {
      return await answerGraphql(
        githubGraph(seen, reads, options.resourceLimit, issued !== undefined),
        request,
        options.missingFields ?? [],
      );
    }
    const isNamed = /^(\/api\/v3)?\/users\/([^/]+)$/.exec(request.path)?.[2] === world.user.login;
    if (request.method === 'GET' && (USER_PATHS.includes(request.path) || isNamed)) {
      return { body: account(world) };
    }
    return (
      answerForks(world, request) ??
      answerLists(seen, request) ??
      answerPulls(world, request) ??
      answerFollowed(world, request, options.storage ?? server.origin) ??
      failure(404, 'Not Found')
    );
  }, options);
  return server;
}

/** GitHub keeps logs at another origin, which takes no token. */
export async function startFakeGithubStorage(world: FakeWorld): Promise<FakeServer> {
  return await FakeServer.start((request) =>
    request.headers['authorization'] === undefined
      ? (answerStorage(world, request) ?? failure(404, 'Not Found'))
      : failure(400, 'InvalidAuthenticationInfo'),
  );
}

function failure(status: number, message: string): FakeResponse {
  return {
    status,
    body: { message, documentation_url: 'https://docs.github.com/rest', status: `${status}` },
  };
}

async function answerGraphql(
  rootValue: unknown,
  request: FakeRequest,
  missingFields: readonly string[],
): Promise<FakeResponse> {
  const schema = githubSchema();
  const body: unknown = JSON.parse(request.body);
  const variables = jsonAt(body, 'variables');
  const document = parse(jsonText(body, 'query') ?? '');
  const wrong = validate(schema, document);
  if (wrong.length > 0) {
    // Loudly, not as a server that is too old: no GitHub would take this document.
    throw new AggregateError(wrong, wrong.map(({ message }) => message).join('; '));
  }
  const errors = fieldsOf(document)
    .filter((name) => missingFields.includes(name))
    .map((name) => ({
      path: ['query', name],
      extensions: { code: 'undefinedField', typeName: 'Any', fieldName: name },
      message: `Field '${name}' doesn't exist on type 'Any'`,
    }));
  if (errors.length > 0) {
    return { body: { errors } };
  }
  const result = await execute({
    schema,
    document,
    rootValue,
    variableValues: typeof variables === 'object' ? { ...variables } : {},
  });
  // GitHub's errors carry their type beside the message.
  const typed = result.errors?.map((error) => ({ type: error.extensions['type'], ...error.toJSON() }));
  return { body: { ...result, ...(typed && { errors: typed }) } };
}

function fieldsOf(document: DocumentNode): string[] {
  const names: string[] = [];
  visit(document, {
    [Kind.FIELD]: (node) => {
      names.push(node.name.value);
    },
  });
  return names;
}

function account({ user }: FakeWorld) {
  return {
    id: Number(user.id),
    node_id: `U_${user.id}`,
    login: user.login,
    type: 'User',
    avatar_url: `https://avatars.example.com/u/${user.id}`,
    name: user.name,
    company: null,
    email: user.email,
  };
}
