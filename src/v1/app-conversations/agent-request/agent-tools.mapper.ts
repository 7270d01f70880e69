import { isJsonObject, type JsonObject } from '../../../common/json-merge.js';
import { serverName } from '../../../mcp-config/named-servers.js';
import type { McpServerEntry, SecretSource } from '../../../agent-protocol/conversation.js';
import type { ClearMcpConfig, ClearRemoteMcpServer } from '../../../mcp-config/mcp-config.types.js';
import type { AgentSecret } from '../../../settings/agent-secrets.reader.js';

/** Secrets of an agent's tools as agent servers take them. */
export function secretSources(secrets: ReadonlyMap<string, AgentSecret>): Record<string, SecretSource> {
  return Object.fromEntries(
    [...secrets].map(([name, { value, description }]) => [
      name,
      { kind: 'StaticSecret', value, ...(description !== null && { description }) },
    ]),
  );
}

/**
 * A user's tool servers as agent servers take them, by name. A command has a name; a remote server is named after its
 * kind and its position in the list.
 */
export function mcpServerEntries(config: ClearMcpConfig | null): Record<string, McpServerEntry> {
  if (config === null) {
    return {};
  }
  const commands = config.stdioServers
    .filter(isEnabled)
    .map(({ name, command, args, env }) => [name, { command, args, env: Object.fromEntries(env) }]);
  return Object.fromEntries([
    ...remote(config.sseServers, 'sse', 'sse'),
    ...remote(config.shttpServers, 'shttp', 'http'),
    // Last, so that a command wins over a remote server of the same name.
    ...commands,
  ]);
}

function remote(
  servers: readonly ClearRemoteMcpServer[],
  kind: string,
  transport: string,
): [string, McpServerEntry][] {
  return servers.flatMap((server, index): [string, McpServerEntry][] => {
    const { url, apiKey, details = {} } = server;
    const headers = {
      ...headersOf(details),
      ...(apiKey !== null && { Authorization: `Bearer ${apiKey}` }),
    };
    const entry = { url, transport, ...(Object.keys(headers).length > 0 && { headers }) };
    return isEnabled(server) ? [[serverName(details, `${kind}_${index}`), entry]] : [];
  });
}

/** Users may switch a server off without removing it. */
function isEnabled({ details }: { details?: JsonObject }): boolean {
  return details?.['enabled'] !== false;
}

function headersOf({ headers }: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(isJsonObject(headers) ? headers : {}).map(([name, value]) => [name, String(value)]),
  );
}
