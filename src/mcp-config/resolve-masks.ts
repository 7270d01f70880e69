import type { InputProblem } from '../common/errors/invalid-input.error.js';
import type { McpConfigDto } from './dto/mcp-config.dto.js';
import type { RemoteMcpServerDto } from './dto/remote-mcp-server.dto.js';
import type { StdioMcpServerDto } from './dto/stdio-mcp-server.dto.js';
import { MASK } from './mask.js';
import type { ClearMcpConfig, ClearRemoteMcpServer, ClearStdioMcpServer } from './mcp-config.types.js';

/** A configuration whose masks are replaced, and the masks that had nothing behind them. */
export interface ResolvedMasks {
  config: ClearMcpConfig;
  problems: InputProblem[];
}

/**
 * Replaces the masks of a configuration by what is stored for the same list and url, or for the same server name and
 * variable. A blank `api_key` is none.
 *
 * @param loc where the configuration stands in the request
 */
export function resolveMasks(
  dto: McpConfigDto,
  stored: ClearMcpConfig | null,
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
  return {
    config: {
      sseServers: remoteServers('sse_servers', dto.sse_servers, stored?.sseServers, resolve),
      stdioServers: stdioServers(dto.stdio_servers, stored?.stdioServers, resolve),
      shttpServers: remoteServers('shttp_servers', dto.shttp_servers, stored?.shttpServers, resolve),
    },
    problems,
  };
}

type Resolve = (value: string, known: string | null | undefined, path: string[]) => string;

function remoteServers(
  list: string,
  servers: readonly RemoteMcpServerDto[] = [],
  stored: readonly ClearRemoteMcpServer[] = [],
  resolve: Resolve,
): ClearRemoteMcpServer[] {
  const known = new Map(stored.map(({ url, apiKey }) => [url, apiKey]));
  return servers.map(({ url, api_key }, index) => ({
    url,
    apiKey: isBlank(api_key) ? null : resolve(api_key, known.get(url), [list, String(index), 'api_key']),
  }));
}

function stdioServers(
  servers: readonly StdioMcpServerDto[] = [],
  stored: readonly ClearStdioMcpServer[] = [],
  resolve: Resolve,
): ClearStdioMcpServer[] {
  const known = new Map(stored.map(({ name, env }) => [name, env]));
  return servers.map(({ name, command, args = [], env = new Map<string, string>() }, index) => ({
    name,
    command,
    args,
    env: new Map(
      [...env].map(([variable, value]) => [
        variable,
        resolve(value, known.get(name)?.get(variable), ['stdio_servers', String(index), 'env', variable]),
      ]),
    ),
  }));
}

function isBlank(key: string | null | undefined): key is null | undefined | '' {
  return key === null || key === undefined || key.trim() === '';
}
