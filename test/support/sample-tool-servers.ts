import type { CommandToolServer, RemoteToolServer } from '@slipway/tool-servers/tool-servers.js';

/** Without a name, a key and details. */
export function remoteServer(
  url: string,
  given: Partial<Omit<RemoteToolServer, 'url'>> = {},
): RemoteToolServer {
  return { transport: 'http', name: null, url, apiKey: null, details: {}, ...given };
}

/** `npx` without arguments, variables and details. */
export function commandServer(
  name: string,
  given: Partial<Omit<CommandToolServer, 'name'>> = {},
): CommandToolServer {
  return { transport: 'stdio', name, command: 'npx', args: [], env: new Map(), details: {}, ...given };
}
