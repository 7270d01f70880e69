import { without } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '@slipway/api/errors/problem-error.js';
import type {
  McpConfigDto,
  RemoteMcpServerDto,
  StdioMcpServerDto,
  StoredMcpConfigDto,
} from './mcp-config.dto.js';
import {
  type CommandToolServer,
  commonMembers,
  isRemote,
  type RemoteToolServer,
  type ToolServer,
} from './tool-servers.js';

/** As they may be stored in clear and shown: every secret is the mask. */
export function maskedServers(servers: readonly ToolServer[]): StoredMcpConfigDto {
  return listed(servers, () => MASK, true);
}

/** Secrets in clear: for agents that may have them. */
export function exposedServers(servers: readonly ToolServer[]): StoredMcpConfigDto {
  return listed(servers, (secret) => secret, false);
}

function listed(
  servers: readonly ToolServer[],
  shown: (secret: string) => string,
  isWhole: boolean,
): StoredMcpConfigDto {
  const remote = (kind: RemoteToolServer['transport']): StoredMcpConfigDto['sse_servers'] =>
    servers
      .filter(isRemote)
      .flatMap(({ transport, url, apiKey, details }) =>
        transport === kind
          ? [{ url, api_key: apiKey === null ? null : shown(apiKey), ...(isWhole && commonMembers(details)) }]
          : [],
      );
  return {
    sse_servers: remote('sse'),
    stdio_servers: servers.flatMap((server) =>
      isRemote(server)
        ? []
        : [
            {
              name: server.name,
              command: server.command,
              args: server.args,
              env: Object.fromEntries([...server.env].map(([variable, value]) => [variable, shown(value)])),
              ...(isWhole && commonMembers(server.details)),
            },
          ],
    ),
    shttp_servers: remote('http'),
  };
}

/** Servers without masks, and a problem for each mask that had nothing behind it. */
interface ResolvedMasks {
  servers: ToolServer[];
  problems: InputProblem[];
}

/**
 * Replaces the masks of a configuration by what is stored for the same list and url, or for the same server name and
 * variable. A blank `api_key` counts as none.
 * @param loc where the configuration stands in the request
 */
export function resolveMasks(
  dto: McpConfigDto,
  stored: readonly ToolServer[] | null,
  loc: readonly string[],
): ResolvedMasks {
  const problems: InputProblem[] = [];
  const resolve = (value: string, known: string | null | undefined, path: string[]): string => {
    if (value !== MASK) {
      return value;
    }
    if (known === null || known === undefined) {
      problems.push({
        loc: [...loc, ...path],
        msg: 'Expected the secret itself: nothing is stored that this mask could stand for.',
        type: 'value_error',
      });
      return '';
    }
    return known;
  };
  const sse = remoteServers('sse', 'sse_servers', dto.sse_servers, stored, resolve);
  const commands = commandServers(dto.stdio_servers, stored, resolve);
  const http = remoteServers('http', 'shttp_servers', dto.shttp_servers, stored, resolve);
  return { servers: [...commands, ...sse, ...http], problems };
}

type Resolve = (value: string, known: string | null | undefined, path: string[]) => string;

function remoteServers(
  transport: RemoteToolServer['transport'],
  list: string,
  servers: readonly RemoteMcpServerDto[] = [],
  stored: readonly ToolServer[] | null,
  resolve: Resolve,
): RemoteToolServer[] {
  const ofKind = stored?.filter(isRemote).filter((server) => server.transport === transport) ?? [];
  const byUrl = new Map(ofKind.map((server) => [server.url, server]));
  return servers.map(({ url, api_key, tools, start_timeout_seconds }, index) => {
    const known = byUrl.get(url);
    return {
      transport,
      name: known?.name ?? null,
      url,
      apiKey: api_key ? resolve(api_key, known?.apiKey, [list, String(index), 'api_key']) : null,
      details: withGiven(known, { tools, start_timeout_seconds }),
    };
  });
}

function commandServers(
  servers: readonly StdioMcpServerDto[] = [],
  stored: readonly ToolServer[] | null,
  resolve: Resolve,
): CommandToolServer[] {
  const commands = stored?.filter((server) => !isRemote(server)) ?? [];
  const byName = new Map(commands.map((server) => [server.name, server]));
  return servers.map(({ name, command, args = [], env = new Map<string, string>(), ...given }, index) => {
    const known = byName.get(name);
    return {
      transport: 'stdio',
      name,
      command,
      args,
      env: new Map(
        [...env].map(([variable, value]) => [
          variable,
          resolve(value, known?.env.get(variable), ['stdio_servers', String(index), 'env', variable]),
        ]),
      ),
      details: withGiven(known, given),
    };
  });
}

/** Details that a client leaves out are kept, because the client may not know them; null removes them. */
function withGiven(
  known: ToolServer | undefined,
  { tools, start_timeout_seconds }: Pick<RemoteMcpServerDto, 'tools' | 'start_timeout_seconds'>,
): ToolServer['details'] {
  const given = Object.entries({ tools, start_timeout_seconds }).filter(([, value]) => value !== undefined);
  const all = { ...known?.details, ...Object.fromEntries(given) };
  const removed = given.filter(([, value]) => value === null).map(([name]) => name);
  return without(all, removed);
}
