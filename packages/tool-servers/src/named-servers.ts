import { addressProblem } from '@slipway/common/http/address-rules.js';
import {
  isJsonObject,
  type JsonObject,
  mapLeaves,
  mergePatch,
  without,
} from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '@slipway/api/errors/problem-error.js';
import { MAX_ELEMENTS } from '@slipway/api/validation/field.js';
import { unmasked } from '@slipway/api/validation/masked-secrets.js';
import { variableNameProblem } from './command-text.js';
import { MAX_LISTED_NAME, MAX_START_SECONDS } from './mcp-config.dto.js';
import {
  allowedTools,
  type CommandToolServer,
  inOrder,
  isRemote,
  type RemoteToolServer,
  type ToolServer,
  withNames,
} from './tool-servers.js';

/** Tool servers by name, in the form of newer clients: `{files: {transport: 'stdio', command, args, env}, …}`. */
type NamedServers = ReadonlyMap<string, JsonObject>;

/** A user's tool servers by name, secrets in clear. */
export function namedServers(servers: readonly ToolServer[] | null): NamedServers {
  const named = new Map<string, JsonObject>();
  for (const [name, server] of withNames(inOrder(servers ?? []))) {
    let free = name;
    for (let count = 1; named.has(free); count += 1) {
      free = `${name}_${count}`;
    }
    named.set(free, toNamed(server));
  }
  return named;
}

function toNamed(server: ToolServer): JsonObject {
  const { transport, details } = server;
  if (!isRemote(server)) {
    const { command, args, env } = server;
    return { transport, command, args, env: Object.fromEntries(env), ...details };
  }
  const { url, apiKey } = server;
  const auth = apiKey !== null && { auth: { strategy: 'bearer', value: apiKey } };
  return { transport, url, ...auth, ...details };
}

export function shownNamedServers(servers: readonly ToolServer[] | null): JsonObject {
  return Object.fromEntries(
    [...namedServers(servers)].map(([name, server]) => [
      name,
      mapLeaves(server, (path, leaf) => (isSecret(path) && typeof leaf === 'string' ? MASK : leaf)),
    ]),
  );
}

function isSecret(path: readonly string[]): boolean {
  const [group, member] = path;
  return (
    group === 'env' ||
    group === 'headers' ||
    (group === 'auth' && !['strategy', 'header_name', 'type'].includes(member ?? ''))
  );
}

interface PatchedServers {
  /** Null: none are left. */
  servers: ToolServer[] | null;
  problems: InputProblem[];
}

/**
 * Changes tool servers as clients ask for it. An object of servers is merged by name, as clients send one server alone
 * when they add or change it, and null when they remove it; within `mcpServers` it is the whole configuration instead.
 * Masks stand for what is stored under the same name, and secrets do not move to another server with it.
 * @param loc where the patch stands in the request
 */
export function patchNamedServers(
  stored: readonly ToolServer[] | null,
  patch: unknown,
  loc: readonly string[],
): PatchedServers {
  if (patch === null) {
    return { servers: null, problems: [] };
  }
  if (!isJsonObject(patch)) {
    return { servers: null, problems: [{ loc: [...loc], msg: 'Expected an object.', type: 'dict_type' }] };
  }
  const known = namedServers(stored);
  const whole = patch['mcpServers'];
  const isWhole = isJsonObject(whole) && !('url' in whole) && !('command' in whole);
  const problems: InputProblem[] = [];
  const servers = new Map(isWhole ? [] : known);
  const within = isWhole ? [...loc, 'mcpServers'] : loc;
  for (const [name, given] of Object.entries(isWhole ? whole : patch)) {
    const at = [...within, name];
    if (given === null) {
      servers.delete(name);
    } else if (isJsonObject(given)) {
      const kept = known.get(name) ?? {};
      const before = isElsewhere(kept, given) ? without(kept, ['auth', 'headers', 'command']) : kept;
      const clear = unmasked(normalised(given, before), before, at, problems, isSecret);
      servers.set(name, mergePatch(isWhole ? {} : before, clear));
    } else {
      problems.push({ loc: at, msg: 'Expected an object.', type: 'dict_type' });
    }
  }
  const after = toToolServers(servers, within, problems);
  return { servers: servers.size === 0 ? null : after, problems };
}

function isElsewhere({ url: before }: JsonObject, { url: after }: JsonObject): boolean {
  const [from, to] = [before, after].map((url) => (typeof url === 'string' ? URL.parse(url.trim()) : null));
  return typeof after === 'string' && from?.origin !== to?.origin;
}

/**
 * Tokens may come as a header, as `api_key` or as a bare `auth`; they are kept apart from the other headers. What comes
 * takes the place of an `Authorization` that is stored.
 */
function normalised(server: JsonObject, { headers: stored }: JsonObject): JsonObject {
  const { headers, api_key: apiKey, auth } = server;
  const bare = [auth, apiKey].find((text) => typeof text === 'string');
  let token: unknown = bare === undefined ? auth : { strategy: 'bearer', value: bare };
  let others: unknown = headers;
  if (headers === null) {
    token ??= null;
  }
  const [kept, given] = [authorizationIn(stored), authorizationIn(headers)];
  if (isJsonObject(headers) && given !== undefined) {
    const value = headers[given];
    const bearer = typeof value === 'string' ? /^Bearer (.+)$/i.exec(value)?.[1] : undefined;
    const isHeader = bearer === undefined && value !== MASK;
    if (value !== MASK) {
      token = isHeader ? null : { strategy: 'bearer', value: bearer };
    }
    others = {
      ...(kept !== undefined && { [kept]: value === MASK ? MASK : null }),
      ...(isHeader ? headers : without(headers, [given])),
    };
  } else if (kept !== undefined && token !== undefined && headers !== null) {
    others = { [kept]: null, ...Object(headers) };
  }
  return {
    ...without(server, ['headers', 'api_key', 'auth', 'type']),
    ...(others !== undefined && { headers: others }),
    ...(token !== undefined && { auth: token }),
  };
}

function authorizationIn(headers: unknown): string | undefined {
  return Object.keys(isJsonObject(headers) ? headers : {}).find(
    (name) => name.toLowerCase() === 'authorization',
  );
}

function toToolServers(
  servers: NamedServers,
  loc: readonly string[],
  problems: InputProblem[],
): ToolServer[] {
  const all: ToolServer[] = [];
  for (const [name, server] of servers) {
    const refuse = (member: string, msg: string): void => {
      problems.push({ loc: [...loc, name, member], msg, type: 'value_error' });
    };
    const allowed = allowedTools(server);
    if (
      server['tools'] !== undefined &&
      (allowed === undefined ||
        allowed.length > MAX_ELEMENTS ||
        allowed.some((tool) => tool.length > MAX_LISTED_NAME))
    ) {
      refuse(
        'tools',
        `Expected a list of at most ${MAX_ELEMENTS} names of tools, each of at most ${MAX_LISTED_NAME} characters.`,
      );
    }
    const seconds = server['start_timeout_seconds'];
    if (seconds !== undefined && !isStartTimeout(seconds)) {
      refuse('start_timeout_seconds', `Expected a whole number from 1 to ${MAX_START_SECONDS}.`);
    }
    if (typeof server['command'] === 'string') {
      all.push(toCommandServer(name, server, server['command'], refuse));
    } else if (typeof server['url'] === 'string') {
      const transport = server['transport'] === 'sse' ? 'sse' : 'http';
      const url = server['url'].trim();
      const problem = addressProblem(url, ['http', 'https', 'ws', 'wss']);
      if (problem !== null) {
        refuse('url', problem);
      }
      if (all.some((other) => other.transport === transport && other.url === url)) {
        refuse('url', 'Expected every url once; an earlier server has this one.');
      }
      all.push({ transport, ...toRemoteServer(name, server, url, refuse) });
    } else {
      refuse('url', 'Expected the command of a server, or its url.');
    }
  }
  return inOrder(all);
}

function isStartTimeout(seconds: unknown): boolean {
  return Number.isSafeInteger(seconds) && Number(seconds) >= 1 && Number(seconds) <= MAX_START_SECONDS;
}

type Refuse = (member: string, msg: string) => void;

function toCommandServer(
  name: string,
  server: JsonObject,
  command: string,
  refuse: Refuse,
): CommandToolServer {
  const { args = [], env = {} } = server;
  if (!/^[A-Za-z0-9_-]+$/.test(name)) {
    refuse('command', 'Expected a name of letters, digits, hyphens and underscores for the server.');
  }
  if (!/^\S+$/.test(command)) {
    refuse('command', 'Expected one program without white space; arguments belong into args.');
  }
  if (!Array.isArray(args) || !args.every((argument) => typeof argument === 'string')) {
    refuse('args', 'Expected a list of strings.');
  }
  const variables = isJsonObject(env) ? Object.entries(env) : [];
  if (
    !isJsonObject(env) ||
    variables.some(([key, value]) => variableNameProblem(key) !== null || typeof value !== 'string')
  ) {
    refuse('env', 'Expected an object of variables, whose values are strings.');
  }
  return {
    transport: 'stdio',
    name,
    command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: new Map(variables.map(([key, value]) => [key, String(value)])),
    details: without(server, ['transport', 'command', 'args', 'env', 'url', 'headers', 'auth']),
  };
}

function toRemoteServer(
  name: string,
  server: JsonObject,
  url: string,
  refuse: Refuse,
): Omit<RemoteToolServer, 'transport'> {
  const { auth, headers = {} } = server;
  if (!isJsonObject(headers) || Object.values(headers).some((value) => typeof value !== 'string')) {
    refuse('headers', 'Expected an object whose values are strings.');
  }
  const credentials = credentialsOf(auth, refuse);
  const all = { ...(isJsonObject(headers) && headers), ...credentials.headers };
  return {
    name,
    url,
    apiKey: credentials.apiKey,
    details: {
      ...without(server, ['transport', 'url', 'auth', 'headers', 'command', 'args', 'env', 'name']),
      ...(Object.keys(all).length > 0 && { headers: all }),
    },
  };
}

/** What an `auth` object means: a bearer token, or headers. */
function credentialsOf(
  auth: unknown,
  refuse: Refuse,
): { apiKey: string | null; headers: Record<string, string> } {
  const none = { apiKey: null, headers: {} };
  if (!isJsonObject(auth)) {
    return none;
  }
  const text = (member: string): string => (typeof auth[member] === 'string' ? auth[member] : '');
  const token = text('value').trim();
  switch (auth['strategy']) {
    case 'none':
      return none;
    case 'bearer':
      return { apiKey: token || null, headers: {} };
    case 'api_key': {
      const header = text('header_name');
      return header === '' || header.toLowerCase() === 'authorization'
        ? { apiKey: token || null, headers: {} }
        : { apiKey: null, headers: { [header]: token } };
    }
    case 'basic': {
      const pair = Buffer.from(`${text('username')}:${text('password')}`, 'utf8').toString('base64');
      return { apiKey: null, headers: { Authorization: `Basic ${pair}` } };
    }
    case 'header': {
      const headers = isJsonObject(auth['headers']) ? Object.entries(auth['headers']) : [];
      return {
        apiKey: null,
        headers: Object.fromEntries(headers.map(([key, value]) => [key, String(value)])),
      };
    }
    default:
      refuse('auth', 'Expected a strategy of: none, bearer, api_key, basic, header.');
      return none;
  }
}
