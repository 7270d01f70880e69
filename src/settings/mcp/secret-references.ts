import { mapLeaves } from '@slipway/common/json-access.js';
import type { ClearMcpConfig, ClearRemoteMcpServer, ClearStdioMcpServer } from './mcp-secrets.js';

/** How configurations of tool servers name a stored secret, in place of holding it. */
const REFERENCE = /\$\{secret:([^}]{1,255})\}/g;

type Fill = (text: string) => string;

/** The configuration with secrets where it names them; what is not among them stays as it is. */
export function withSecrets(
  config: ClearMcpConfig,
  secrets: ReadonlyMap<string, { value: string }>,
): ClearMcpConfig {
  return filled(config, (text) =>
    text.replaceAll(REFERENCE, (reference, name: string) => secrets.get(name)?.value ?? reference),
  );
}

/** Names of the secrets that a configuration names. */
export function referencedSecrets(config: ClearMcpConfig | null): string[] {
  const names = new Set<string>();
  if (config !== null) {
    filled(config, (text) => {
      for (const [, name = ''] of text.matchAll(REFERENCE)) {
        names.add(name);
      }
      return text;
    });
  }
  return [...names];
}

// Addresses are checked when they are stored, and commands are shown.
function filled({ sseServers, stdioServers, shttpServers }: ClearMcpConfig, fill: Fill): ClearMcpConfig {
  return {
    sseServers: sseServers.map((server) => filledRemote(server, fill)),
    stdioServers: stdioServers.map((server) => filledCommand(server, fill)),
    shttpServers: shttpServers.map((server) => filledRemote(server, fill)),
  };
}

function filledRemote(
  { apiKey, details, ...server }: ClearRemoteMcpServer,
  fill: Fill,
): ClearRemoteMcpServer {
  return {
    ...server,
    apiKey: apiKey === null ? null : fill(apiKey),
    ...(details && {
      details: Object.fromEntries(
        Object.entries(details).map(([name, member]) => [
          name,
          name === 'headers'
            ? mapLeaves(member, (_path, leaf) => (typeof leaf === 'string' ? fill(leaf) : leaf))
            : member,
        ]),
      ),
    }),
  };
}

function filledCommand({ args, env, ...server }: ClearStdioMcpServer, fill: Fill): ClearStdioMcpServer {
  return {
    ...server,
    args: args.map(fill),
    env: new Map([...env].map(([name, value]) => [name, fill(value)])),
  };
}
