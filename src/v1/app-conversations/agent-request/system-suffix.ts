import type { StartRequest } from '../start/start-request.js';
import type { PortAddress } from '../../sandboxes/sandbox-addresses.js';
import type { AgentDialect } from './agent-dialect.js';

const PLAN =
  'You are asked for a plan only. Read whatever helps, and write the plan into PLAN.md. Change no other file, ' +
  'and run nothing that changes anything.';

/** What the system prompt ends with: the words of the request, and what the server has no member for; else null. */
export function systemSuffix(
  dialect: AgentDialect,
  request: Pick<StartRequest, 'system_message_suffix' | 'agent_type'>,
  language: string | null,
  ports: readonly PortAddress[],
): string | null {
  const parts = [
    request.system_message_suffix,
    request.agent_type === 'plan' ? PLAN : null,
    portsText(ports),
    dialect === 'stock' && language ? `Answer in this language: ${language}.` : null,
  ].filter((part) => part !== null && part !== '');
  return parts.length === 0 ? null : parts.join('\n\n');
}

function portsText(ports: readonly PortAddress[]): string | null {
  const list = ports.map(({ name, url }) => `$${name} (${url})`).join(', ');
  return list === ''
    ? null
    : `A web server that the user is to see must listen on the host in $LISTEN_HOST and on a port of these variables; in brackets is where the user opens it: ${list}. A page of one cannot reach the other: let one server answer for page and API. It runs in the background until the sandbox is paused.`;
}
