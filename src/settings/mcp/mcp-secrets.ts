import { type JsonObject, without } from '@slipway/common/json-merge.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '../../common/errors/domain-error.js';
import type { McpConfigDto, RemoteMcpServerDto, StdioMcpServerDto } from './mcp-config.dto.js';
import {
  allowedTools,
  type ClearMcpConfig,
  type ClearRemoteMcpServer,
  type ClearStdioMcpServer,
  type StoredMcpConfig,
  type StoredRemoteMcpServer,
} from './mcp-config.types.js';

type Pairs<Value> = [string, Value][];

/**
 * The secrets behind the masks, by url, or by server name and variable. Lists of pairs, not objects: a variable may
 * be called `__proto__`.
 */
export interface McpSecrets {
  sse: Pairs<string>;
  stdio: Pairs<Pairs<string>>;
  shttp: Pairs<string>;
}

/** The configuration as it may be stored in clear and shown: every secret is the mask. */
export function maskedConfig(config: ClearMcpConfig): StoredMcpConfig {
  return {
    sse_servers: config.sseServers.map(maskedServer),
    stdio_servers: config.stdioServers.map(({ name, command, args, env, details }) => ({
      name,
      command,
      args,
      env: Object.fromEntries([...env.keys()].map((variable) => [variable, MASK])),
      ...shownTools(details),
    })),
    shttp_servers: config.shttpServers.map(maskedServer),
  };
}

/** A configuration in its wire format, secrets in clear: for agents that may have them. */
export function exposedConfig(config: ClearMcpConfig): StoredMcpConfig {
  return {
    sse_servers: config.sseServers.map(exposedServer),
    stdio_servers: config.stdioServers.map(({ name, command, args, env }) => ({
      name,
      command,
      args,
      env: Object.fromEntries(env),
    })),
    shttp_servers: config.shttpServers.map(exposedServer),
  };
}

/** The secrets that {@link maskedConfig} leaves out, or null when there are none. */
export function secretsOf(config: ClearMcpConfig): McpSecrets | null {
  const secrets: McpSecrets = {
    sse: keysByUrl(config.sseServers),
    stdio: config.stdioServers.filter(({ env }) => env.size > 0).map(({ name, env }) => [name, [...env]]),
    shttp: keysByUrl(config.shttpServers),
  };
  return Object.values(secrets).some((entries: unknown[]) => entries.length > 0) ? secrets : null;
}

/**
 * Puts the secrets back behind their masks.
 *
 * @throws Error when a mask has no secret; both are written together, so the row was changed by hand
 */
export function unmaskedConfig(shown: StoredMcpConfig, secrets: McpSecrets | null): ClearMcpConfig {
  const environments = new Map(secrets?.stdio);
  return {
    sseServers: unmaskedServers(shown.sse_servers, new Map(secrets?.sse)),
    stdioServers: shown.stdio_servers.map(({ name, command, args, env }) => {
      const values = new Map(environments.get(name));
      return {
        name,
        command,
        args,
        env: new Map(Object.keys(env).map((variable) => [variable, requireSecret(values.get(variable))])),
      };
    }),
    shttpServers: unmaskedServers(shown.shttp_servers, new Map(secrets?.shttp)),
  };
}

function exposedServer({ url, apiKey }: ClearRemoteMcpServer): StoredRemoteMcpServer {
  return { url, api_key: apiKey };
}

function maskedServer({ url, apiKey, details }: ClearRemoteMcpServer): StoredRemoteMcpServer {
  return { url, api_key: apiKey === null ? null : MASK, ...shownTools(details) };
}

function shownTools(details: JsonObject = {}): { tools?: string[] } {
  const tools = allowedTools(details);
  return tools === undefined ? {} : { tools };
}

function keysByUrl(servers: readonly ClearRemoteMcpServer[]): Pairs<string> {
  return servers.flatMap(({ url, apiKey }): Pairs<string> => (apiKey === null ? [] : [[url, apiKey]]));
}

function unmaskedServers(
  servers: readonly StoredRemoteMcpServer[],
  keys: ReadonlyMap<string, string>,
): ClearRemoteMcpServer[] {
  return servers.map(({ url, api_key }) => ({
    url,
    apiKey: api_key === null ? null : requireSecret(keys.get(url)),
  }));
}

function requireSecret(secret: string | undefined): string {
  if (secret === undefined) {
    throw new Error('a masked MCP secret is missing from the stored secrets');
  }
  return secret;
}

/** The details of servers by url, or by name. */
export interface McpDetails {
  sse: Pairs<JsonObject>;
  stdio: Pairs<JsonObject>;
  shttp: Pairs<JsonObject>;
}

/** What servers have beyond the three lists, or null when none has anything. */
export function detailsOf(config: ClearMcpConfig): McpDetails | null {
  const details: McpDetails = {
    sse: remoteDetails(config.sseServers),
    stdio: config.stdioServers.flatMap(({ name, details: own }): Pairs<JsonObject> =>
      own ? [[name, own]] : [],
    ),
    shttp: remoteDetails(config.shttpServers),
  };
  return Object.values(details).some((entries: unknown[]) => entries.length > 0) ? details : null;
}

function remoteDetails(servers: readonly ClearRemoteMcpServer[]): Pairs<JsonObject> {
  return servers.flatMap(({ url, details }): Pairs<JsonObject> => (details ? [[url, details]] : []));
}

function withOwnDetails<Server extends object>(server: Server, details: JsonObject | undefined): Server {
  return details ? { ...server, details } : server;
}

/** A configuration with the details of its servers. */
export function withDetails(config: ClearMcpConfig, { sse, stdio, shttp }: McpDetails): ClearMcpConfig {
  const known = { sse: new Map(sse), stdio: new Map(stdio), shttp: new Map(shttp) };
  return {
    sseServers: config.sseServers.map((server) => withOwnDetails(server, known.sse.get(server.url))),
    stdioServers: config.stdioServers.map((server) => withOwnDetails(server, known.stdio.get(server.name))),
    shttpServers: config.shttpServers.map((server) => withOwnDetails(server, known.shttp.get(server.url))),
  };
}

/** A configuration without masks, and a problem for each mask that had nothing behind it. */
interface ResolvedMasks {
  config: ClearMcpConfig;
  problems: InputProblem[];
}

/**
 * Replaces the masks of a configuration by what is stored for the same list and url, or for the same server name and
 * variable. A blank `api_key` counts as none.
 *
 * @param loc where the configuration stands in the request
 */
export function resolveMasks(
  dto: McpConfigDto,
  stored: ClearMcpConfig | null,
  loc: readonly string[],
): ResolvedMasks {
  const problems: InputProblem[] = [];
  const resolve = (value: string, known: string | null | undefined, path: string[]): string => {
    if (value !== MASK) {
      return value;
    }
    if (known === null || known === undefined) {
      problems.push({
        loc: [...loc, ...path],
        msg: 'Expected the secret itself: nothing is stored that this mask could stand for.',
        type: 'value_error',
      });
      return '';
    }
    return known;
  };
  return {
    config: {
      sseServers: remoteServers('sse_servers', dto.sse_servers, stored?.sseServers, resolve),
      stdioServers: stdioServers(dto.stdio_servers, stored?.stdioServers, resolve),
      shttpServers: remoteServers('shttp_servers', dto.shttp_servers, stored?.shttpServers, resolve),
    },
    problems,
  };
}

type Resolve = (value: string, known: string | null | undefined, path: string[]) => string;

function remoteServers(
  list: string,
  servers: readonly RemoteMcpServerDto[] = [],
  stored: readonly ClearRemoteMcpServer[] = [],
  resolve: Resolve,
): ClearRemoteMcpServer[] {
  const known = new Map(stored.map((server) => [server.url, server]));
  return servers.map(({ url, api_key, tools }, index) => ({
    url,
    apiKey: isBlank(api_key)
      ? null
      : resolve(api_key, known.get(url)?.apiKey, [list, String(index), 'api_key']),
    ...resolvedDetails(known.get(url), tools),
  }));
}

function stdioServers(
  servers: readonly StdioMcpServerDto[] = [],
  stored: readonly ClearStdioMcpServer[] = [],
  resolve: Resolve,
): ClearStdioMcpServer[] {
  const known = new Map(stored.map((server) => [server.name, server]));
  return servers.map(({ name, command, args = [], env = new Map<string, string>(), tools }, index) => ({
    name,
    command,
    args,
    env: new Map(
      [...env].map(([variable, value]) => [
        variable,
        resolve(value, known.get(name)?.env.get(variable), ['stdio_servers', String(index), 'env', variable]),
      ]),
    ),
    ...resolvedDetails(known.get(name), tools),
  }));
}

/** Details that a client leaves out are kept, because the client may not know them. */
function resolvedDetails(
  { details: kept = {} }: { details?: JsonObject } = {},
  tools: string[] | null | undefined,
): { details?: JsonObject } {
  const details =
    tools === undefined ? kept : { ...without(kept, ['tools']), ...(tools !== null && { tools }) };
  return Object.keys(details).length === 0 ? {} : { details };
}

function isBlank(key: string | null | undefined): key is null | undefined | '' {
  return key === null || key === undefined || key.trim() === '';
}
