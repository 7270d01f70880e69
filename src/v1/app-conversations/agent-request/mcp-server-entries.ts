import type { McpServerEntry } from '../../../agent-protocol/start-conversation-request.js';
import type { ClearMcpConfig, ClearRemoteMcpServer } from '../../../mcp-config/mcp-config.types.js';

/**
 * A user's tool servers as agents are given them, by name: a command has one, the others are called after their kind
 * and place in the list.
 */
export function mcpServerEntries(config: ClearMcpConfig | null): Record<string, McpServerEntry> {
  if (config === null) {
    return {};
  }
  const commands = config.stdioServers.map(({ name, command, args, env }) => [
    name,
    { command, args, env: Object.fromEntries(env) },
  ]);
  return Object.fromEntries([
    ...remote(config.sseServers, 'sse', 'sse'),
    ...remote(config.shttpServers, 'shttp', 'http'),
    // Last: who gives a command the name of another has the command.
    ...commands,
  ]);
}

function remote(
  servers: readonly ClearRemoteMcpServer[],
  kind: string,
  transport: string,
): [string, McpServerEntry][] {
  return servers.map(({ url, apiKey }, index) => [
    `${kind}_${index}`,
    { url, transport, ...(apiKey !== null && { headers: { Authorization: `Bearer ${apiKey}` } }) },
  ]);
}
