import type { McpServer as AcpMcpServer } from '@agentclientprotocol/sdk';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import type { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';

/** The user's tool servers in the form that the agent accepts, and a sentence about each one that it cannot use. */
export interface OfferedMcpServers {
  servers: AcpMcpServer[];
  problems: string[];
}

/** The agent connects to them itself, from where tools run, so their addresses are checked only here. */
export function toMcpServers(
  configured: McpServers | null,
  takes: { http: boolean; sse: boolean },
  addresses: OutboundAddresses,
): OfferedMcpServers {
  const offered: OfferedMcpServers = { servers: [], problems: [] };
  for (const [name, server] of Object.entries(configured ?? {})) {
    if (server.tools !== undefined) {
      const detail = `The tool server ${name} offers all of its tools: agents of others take no list of allowed ones.`;
      offered.problems.push(detail);
    }
    if ('command' in server) {
      const { command, args = [], env = {} } = server;
      offered.servers.push({ name, command, args, env: toList(env) });
      continue;
    }
    const { transport: type, url, headers = {} } = server;
    const problem = takes[type] ? addresses.problem(url) : `the agent supports no tool servers over ${type}.`;
    if (problem === null) {
      offered.servers.push({ type, name, url, headers: toList(headers) });
    } else {
      offered.problems.push(`The tool server ${name} cannot be used: ${problem}`);
    }
  }
  return offered;
}

function toList(values: Record<string, string>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
