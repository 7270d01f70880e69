import type { JsonObject } from '@slipway/common/json-access.js';

interface CommonMembers {
  /** What newer clients gave beyond the rest: `headers`, `tools`, `timeout`, `enabled`, `cwd`, … */
  details: JsonObject;
}

/** A tool server reached over HTTP, with its key in clear. Never part of a response or a row. */
export interface RemoteToolServer extends CommonMembers {
  transport: 'sse' | 'http';
  /** Null: it is named after its kind and its position, see {@link withNames}. */
  name: string | null;
  url: string;
  apiKey: string | null;
}

/** A tool server started as a command, with its environment in clear. Never part of a response or a row. */
export interface CommandToolServer extends CommonMembers {
  transport: 'stdio';
  name: string;
  command: string;
  args: string[];
  env: ReadonlyMap<string, string>;
}

/** As agents need it. Each wire has a converter: `listed-servers`, `named-servers`, and that of agent servers. */
export type ToolServer = RemoteToolServer | CommandToolServer;

/** The names of kinds in `mcp_config`, and in the order in which everything lists them. */
const TOOL_SERVER_KINDS = { stdio: 'stdio', sse: 'sse', http: 'shttp' } as const;

export function isRemote(server: ToolServer): server is RemoteToolServer {
  return server.transport !== 'stdio';
}

/** Sorts by kind, and keeps the order within each. */
export function inOrder(servers: readonly ToolServer[]): ToolServer[] {
  return Object.keys(TOOL_SERVER_KINDS).flatMap((kind) =>
    servers.filter(({ transport }) => transport === kind),
  );
}

/** Each with its name, of which more than one may have the same. */
export function withNames<Server extends ToolServer>(servers: readonly Server[]): [string, Server][] {
  const counts = { stdio: 0, sse: 0, http: 0 };
  return servers.map((server) => {
    const index = counts[server.transport];
    counts[server.transport] += 1;
    return [server.name ?? `${TOOL_SERVER_KINDS[server.transport]}_${index}`, server];
  });
}

/** The names in a list of allowed tools; undefined when there is none. */
export function allowedTools({ tools }: JsonObject): string[] | undefined {
  return Array.isArray(tools) && tools.every((name) => typeof name === 'string') ? tools : undefined;
}

/** Members that have one name in all forms: the tools that agents get, and the seconds that it may take to start. */
export function commonMembers(details: JsonObject): { tools?: string[]; start_timeout_seconds?: number } {
  const tools = allowedTools(details);
  const { start_timeout_seconds: seconds } = details;
  return {
    ...(tools && { tools }),
    ...(Number.isSafeInteger(seconds) && { start_timeout_seconds: Number(seconds) }),
  };
}
