import type { McpServer as AcpMcpServer } from '@agentclientprotocol/sdk';
import type { McpServers } from '../../../agent-protocol/conversation.js';
import type { OutboundAddresses } from '../../../common/http/host-allowlist.js';

/** The user's tool servers as the agent takes them, and those that it cannot have, a sentence each. */
export interface OfferedMcpServers {
  servers: AcpMcpServer[];
  problems: string[];
}

/** The agent connects them itself, from where tools are, so addresses are checked here once. */
export function toMcpServers(
  configured: McpServers | null,
  takes: { http: boolean; sse: boolean },
  addresses: OutboundAddresses,
): OfferedMcpServers {
  const offered: OfferedMcpServers = { servers: [], problems: [] };
  for (const [name, server] of Object.entries(configured ?? {})) {
    if ('command' in server) {
      const { command, args = [], env = {} } = server;
      offered.servers.push({ name, command, args, env: toList(env) });
      continue;
    }
    const { transport: type, url, headers = {} } = server;
    const problem = takes[type] ? addresses.problem(url) : `the agent connects to none over ${type}.`;
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
