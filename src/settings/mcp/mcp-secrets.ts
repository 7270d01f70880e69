import type { JsonObject } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '../../common/errors/domain-error.js';
import type { McpConfigDto, RemoteMcpServerDto, StdioMcpServerDto } from './mcp-config.dto.js';

/** A tool server reached over HTTP; `api_key` is null or the mask. */
export interface StoredRemoteMcpServer {
  url: string;
  api_key: string | null;
  /** Names of the tools that agents get; all without it. */
  tools?: string[];
  start_timeout_seconds?: number;
}

/** A tool server started as a command; the values of `env` are masks. */
export interface StoredStdioMcpServer {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  tools?: string[];
  start_timeout_seconds?: number;
}

/** The MCP configuration as it is stored and shown: secrets are masked. */
export interface StoredMcpConfig {
  sse_servers: StoredRemoteMcpServer[];
  stdio_servers: StoredStdioMcpServer[];
  shttp_servers: StoredRemoteMcpServer[];
}

/** The names in a list of allowed tools; undefined when there is none. */
export function allowedTools({ tools }: JsonObject): string[] | undefined {
  return Array.isArray(tools) && tools.every((name) => typeof name === 'string') ? tools : undefined;
}

/** Seconds that a server may take to start; undefined where it says none. */
export function startTimeout({ start_timeout_seconds: seconds }: JsonObject): number | undefined {
  return Number.isSafeInteger(seconds) ? Number(seconds) : undefined;
}

/** A tool server reached over HTTP, with its key in clear. Never part of a response or a row. */
export interface ClearRemoteMcpServer {
  url: string;
  apiKey: string | null;
  /** What newer clients gave beyond that: `name`, `headers`, `tools`, `timeout`, `enabled`, … */
  details?: JsonObject;
}

/** A tool server started as a command, with its environment in clear. Never part of a response or a row. */
export interface ClearStdioMcpServer {
  name: string;
  command: string;
  args: string[];
  env: ReadonlyMap<string, string>;
  /** What newer clients gave beyond that: `cwd`, `tools`, `timeout`, `enabled`, … */
  details?: JsonObject;
}

/** The MCP configuration with its secrets, as agents need it. */
export interface ClearMcpConfig {
  sseServers: ClearRemoteMcpServer[];
  stdioServers: ClearStdioMcpServer[];
  shttpServers: ClearRemoteMcpServer[];
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
      ...shownDetails(details),
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

/** The configuration with its secrets, as it is encrypted. */
export function serialized(config: ClearMcpConfig): string {
  // Pairs, not objects: a variable may be called `__proto__`.
  const servers = config.stdioServers.map((server) => ({ ...server, env: [...server.env] }));
  return JSON.stringify({ ...config, stdioServers: servers });
}

export function parsedConfig(text: string): ClearMcpConfig {
  const config: SerializedConfig = JSON.parse(text);
  const servers = config.stdioServers.map((server) => ({ ...server, env: new Map(server.env) }));
  return { ...config, stdioServers: servers };
}

type SerializedConfig = Omit<ClearMcpConfig, 'stdioServers'> & {
  stdioServers: (Omit<ClearStdioMcpServer, 'env'> & { env: [string, string][] })[];
};

function exposedServer({ url, apiKey }: ClearRemoteMcpServer): StoredRemoteMcpServer {
  return { url, api_key: apiKey };
}

function maskedServer({ url, apiKey, details }: ClearRemoteMcpServer): StoredRemoteMcpServer {
  return { url, api_key: apiKey === null ? null : MASK, ...shownDetails(details) };
}

function shownDetails(
  details: JsonObject = {},
): Pick<StoredRemoteMcpServer, 'tools' | 'start_timeout_seconds'> {
  const tools = allowedTools(details);
  const seconds = startTimeout(details);
  return { ...(tools && { tools }), ...(seconds !== undefined && { start_timeout_seconds: seconds }) };
}

/** A configuration without masks, and a problem for each mask that had nothing behind it. */
interface ResolvedMasks {
  config: ClearMcpConfig;
  problems: InputProblem[];
}

/**
 * Replaces the masks of a configuration by what is stored for the same list and url, or for the same server name and
 * variable. A blank `api_key` counts as none.
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
  return servers.map(({ url, api_key, tools, start_timeout_seconds }, index) => ({
    url,
    apiKey: api_key ? resolve(api_key, known.get(url)?.apiKey, [list, String(index), 'api_key']) : null,
    ...resolvedDetails(known.get(url), { tools, start_timeout_seconds }),
  }));
}

function stdioServers(
  servers: readonly StdioMcpServerDto[] = [],
  stored: readonly ClearStdioMcpServer[] = [],
  resolve: Resolve,
): ClearStdioMcpServer[] {
  const known = new Map(stored.map((server) => [server.name, server]));
  return servers.map(({ name, command, args = [], env = new Map<string, string>(), ...given }, index) => ({
    name,
    command,
    args,
    env: new Map(
      [...env].map(([variable, value]) => [
        variable,
        resolve(value, known.get(name)?.env.get(variable), ['stdio_servers', String(index), 'env', variable]),
      ]),
    ),
    ...resolvedDetails(known.get(name), given),
  }));
}

/** Details that a client leaves out are kept, because the client may not know them; null removes them. */
function resolvedDetails(
  { details: kept = {} }: { details?: JsonObject } = {},
  { tools, start_timeout_seconds }: Pick<RemoteMcpServerDto, 'tools' | 'start_timeout_seconds'>,
): { details?: JsonObject } {
  const given = Object.entries({ tools, start_timeout_seconds }).filter(([, value]) => value !== undefined);
  const details = Object.fromEntries(
    [...Object.entries(kept), ...given].filter(
      ([name]) => !given.some(([member, value]) => member === name && value === null),
    ),
  );
  return Object.keys(details).length === 0 ? {} : { details };
}
