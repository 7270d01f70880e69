import { type JsonObject, without } from '@slipway/common/json-access.js';
import { type CommandToolServer, isRemote, type RemoteToolServer, type ToolServer } from './tool-servers.js';

interface StoredRemoteServer {
  url: string;
  apiKey: string | null;
  /** The server's name among them. */
  details?: JsonObject;
}

interface StoredCommandServer {
  name: string;
  command: string;
  args: string[];
  /** Pairs, not an object: a variable may be called `__proto__`. */
  env: [string, string][];
  details?: JsonObject;
}

/** What is encrypted has been of this form since the first version. */
interface StoredServers {
  sseServers: StoredRemoteServer[];
  stdioServers: StoredCommandServer[];
  shttpServers: StoredRemoteServer[];
}

/** Tool servers with their secrets, as they are encrypted. */
export function serialized(servers: readonly ToolServer[]): string {
  const remote = (kind: RemoteToolServer['transport']): StoredRemoteServer[] =>
    servers
      .filter(isRemote)
      .filter(({ transport }) => transport === kind)
      .map(({ name, url, apiKey, details }) => ({
        url,
        apiKey,
        details: { ...(name !== null && { name }), ...details },
      }));
  const stored: StoredServers = {
    sseServers: remote('sse'),
    stdioServers: servers.flatMap((server) => (isRemote(server) ? [] : [toStoredCommand(server)])),
    shttpServers: remote('http'),
  };
  return JSON.stringify(stored);
}

export function parsedServers(text: string): ToolServer[] {
  const { sseServers, stdioServers, shttpServers }: StoredServers = JSON.parse(text);
  return [
    ...stdioServers.map(({ env, details = {}, ...server }): ToolServer => {
      return { transport: 'stdio', ...server, env: new Map(env), details };
    }),
    ...sseServers.map((server) => toRemote('sse', server)),
    ...shttpServers.map((server) => toRemote('http', server)),
  ];
}

function toStoredCommand({ name, command, args, env, details }: CommandToolServer): StoredCommandServer {
  return { name, command, args, env: [...env], details };
}

function toRemote(
  transport: RemoteToolServer['transport'],
  { url, apiKey, details = {} }: StoredRemoteServer,
): RemoteToolServer {
  const { name } = details;
  return {
    transport,
    name: typeof name === 'string' ? name : null,
    url,
    apiKey,
    details: without(details, ['name']),
  };
}
