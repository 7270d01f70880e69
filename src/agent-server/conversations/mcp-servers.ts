import type { McpServer, McpServers } from '../../agent-protocol/mcp-servers.js';
import type { ParsedMcpServers } from './start-schema.js';

/** Tool servers as the engine starts them; null when there is none. An entry with neither command nor URL is none. */
export function toMcpServers(entries: ParsedMcpServers | undefined): McpServers | null {
  const servers = Object.entries(entries ?? {}).flatMap(([name, entry]) => {
    const server = toServer(entry);
    return server === null ? [] : [[name, server] as const];
  });
  return servers.length === 0 ? null : Object.fromEntries(servers);
}

function toServer(entry: ParsedMcpServers[string]): McpServer | null {
  if (entry.command !== undefined) {
    return { command: entry.command, args: entry.args ?? [], env: entry.env ?? {} };
  }
  if (entry.url === undefined) {
    return null;
  }
  const authorization: Record<string, string> = entry.auth ? { Authorization: `Bearer ${entry.auth}` } : {};
  return {
    url: entry.url,
    transport: entry.transport === 'sse' ? 'sse' : 'http',
    headers: { ...authorization, ...entry.headers },
  };
}

/** Values in a configuration that are secrets: variables, headers. */
export function mcpSecretValues(servers: McpServers | null): string[] {
  return Object.values(servers ?? {}).flatMap((server) => {
    if ('command' in server) {
      return Object.values(server.env ?? {});
    }
    return Object.values(server.headers ?? {}).flatMap((value) => [
      value,
      value.replace(/^(Bearer|Basic|Token) /i, ''),
    ]);
  });
}
