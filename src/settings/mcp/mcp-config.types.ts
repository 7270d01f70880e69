import type { JsonObject } from '@slipway/common/json-access.js';

/** A tool server reached over HTTP; `api_key` is null or the mask. */
export interface StoredRemoteMcpServer {
  url: string;
  api_key: string | null;
  /** Names of the tools that agents get; all without it. */
  tools?: string[];
}

/** A tool server started as a command; the values of `env` are masks. */
export interface StoredStdioMcpServer {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  tools?: string[];
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
