import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';

/** Brings tool servers of the published API into the form with `mcpServers`; the schema refuses the rest. */
export function plainMcpConfig(config: unknown): unknown {
  if (!isJsonObject(config)) {
    return config;
  }
  const servers = Object.hasOwn(config, 'mcpServers') ? config['mcpServers'] : config;
  return { mcpServers: isJsonObject(servers) ? plainServers(servers) : (servers ?? undefined) };
}

function plainServers(servers: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(servers)
      .filter(([, server]) => !isJsonObject(server) || server['enabled'] !== false)
      .map(([name, server]) => [name, isJsonObject(server) ? plainServer(server) : server]),
  );
}

function plainServer(server: JsonObject): JsonObject {
  const { auth, ...members } = Object.fromEntries(
    Object.entries(server).filter(([, value]) => value !== null),
  );
  return isJsonObject(auth) ? signedIn(members, auth) : { ...members, ...(auth !== undefined && { auth }) };
}

function signedIn(server: JsonObject, auth: JsonObject): JsonObject {
  const { strategy, value, header_name: header, headers, username, password } = auth;
  switch (strategy) {
    case 'none':
      return server;
    case 'api_key':
      return typeof header === 'string' && header !== ''
        ? withHeaders(server, { [header]: value })
        : { ...server, auth: value };
    case 'bearer':
      return { ...server, auth: value };
    case 'basic': {
      const words = [username, password].map((word) => (typeof word === 'string' ? word : '')).join(':');
      const encoded = Buffer.from(words).toString('base64');
      return withHeaders(server, { Authorization: `Basic ${encoded}` });
    }
    case 'header':
      return withHeaders(server, isJsonObject(headers) ? headers : {});
    default:
      return { ...server, auth };
  }
}

function withHeaders(server: JsonObject, headers: JsonObject): JsonObject {
  return { ...server, headers: { ...(isJsonObject(server['headers']) && server['headers']), ...headers } };
}
