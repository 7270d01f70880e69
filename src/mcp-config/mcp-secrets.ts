import { MASK } from './mask.js';
import type {
  ClearMcpConfig,
  ClearRemoteMcpServer,
  StoredMcpConfig,
  StoredRemoteMcpServer,
} from './mcp-config.types.js';

type Entries<Value> = [string, Value][];

/**
 * The secrets behind the masks, by url, or by server name and variable. Lists of pairs, not objects: a variable may
 * be called `__proto__`.
 */
export interface McpSecrets {
  sse: Entries<string>;
  stdio: Entries<Entries<string>>;
  shttp: Entries<string>;
}

/** The configuration as it may be stored in clear and shown: every secret is the mask. */
export function maskedConfig(config: ClearMcpConfig): StoredMcpConfig {
  return {
    sse_servers: config.sseServers.map(maskedServer),
    stdio_servers: config.stdioServers.map(({ name, command, args, env }) => ({
      name,
      command,
      args,
      env: Object.fromEntries([...env.keys()].map((variable) => [variable, MASK])),
    })),
    shttp_servers: config.shttpServers.map(maskedServer),
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
 * @throws Error when a mask has no secret; both are written together, so only foreign hands can have done that
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
        env: new Map(Object.keys(env).map((variable) => [variable, found(values.get(variable))])),
      };
    }),
    shttpServers: unmaskedServers(shown.shttp_servers, new Map(secrets?.shttp)),
  };
}

function maskedServer({ url, apiKey }: ClearRemoteMcpServer): StoredRemoteMcpServer {
  return { url, api_key: apiKey === null ? null : MASK };
}

function keysByUrl(servers: readonly ClearRemoteMcpServer[]): Entries<string> {
  return servers.flatMap(({ url, apiKey }): Entries<string> => (apiKey === null ? [] : [[url, apiKey]]));
}

function unmaskedServers(
  servers: readonly StoredRemoteMcpServer[],
  keys: ReadonlyMap<string, string>,
): ClearRemoteMcpServer[] {
  return servers.map(({ url, api_key }) => ({ url, apiKey: api_key === null ? null : found(keys.get(url)) }));
}

function found(secret: string | undefined): string {
  if (secret === undefined) {
    throw new Error('a masked MCP secret is missing from the stored secrets');
  }
  return secret;
}
