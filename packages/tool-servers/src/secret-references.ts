import { mapLeaves } from '@slipway/common/json-access.js';
import { isRemote, type ToolServer } from './tool-servers.js';

/** How configurations of tool servers name a stored secret, in place of holding it. */
const REFERENCE = /\$\{secret:([^}]{1,255})\}/g;

type Fill = (text: string) => string;

/** The servers with secrets where they name them; what is not among `secrets` stays as it is. */
export function withSecrets(
  servers: readonly ToolServer[],
  secrets: ReadonlyMap<string, { value: string }>,
): ToolServer[] {
  const fill = (text: string): string =>
    text.replaceAll(REFERENCE, (reference, name: string) => secrets.get(name)?.value ?? reference);
  return servers.map((server) => filled(server, fill));
}

/** Names of the secrets that the servers name. */
export function referencedSecrets(servers: readonly ToolServer[] | null): string[] {
  const names = new Set<string>();
  for (const server of servers ?? []) {
    filled(server, (text) => {
      for (const [, name = ''] of text.matchAll(REFERENCE)) {
        names.add(name);
      }
      return text;
    });
  }
  return [...names];
}

// Addresses are checked when they are stored, and commands are shown.
function filled(server: ToolServer, fill: Fill): ToolServer {
  if (!isRemote(server)) {
    const env = new Map([...server.env].map(([name, value]) => [name, fill(value)]));
    return { ...server, args: server.args.map(fill), env };
  }
  const { apiKey, details } = server;
  const { headers } = details;
  return {
    ...server,
    apiKey: apiKey === null ? null : fill(apiKey),
    details: {
      ...details,
      ...(headers !== undefined && {
        headers: mapLeaves(headers, (_path, leaf) => (typeof leaf === 'string' ? fill(leaf) : leaf)),
      }),
    },
  };
}
