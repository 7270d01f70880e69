import type { ClearMcpConfig, ClearRemoteMcpServer, StoredMcpConfig } from './mcp-config.types.js';

/** A configuration in the form of the wire, secrets in clear: for agents that may have them. */
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

function exposedServer({ url, apiKey }: ClearRemoteMcpServer): { url: string; api_key: string | null } {
  return { url, api_key: apiKey };
}
