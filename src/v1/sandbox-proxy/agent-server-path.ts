const PREFIX = /^\/api\/v1\/sandboxes\/([0-9A-Za-z]{1,64})\/agent-server(?=[/?]|$)/;

/** An address under a sandbox's agent server. */
export interface AgentServerPath {
  sandboxId: string;
  /** Path and query as the agent server gets them. */
  rest: string;
}

/** Takes the address of a request apart; null when it does not lie under an agent server. */
export function agentServerPath(address: string): AgentServerPath | null {
  const [prefix, sandboxId] = PREFIX.exec(address) ?? [];
  if (prefix === undefined || sandboxId === undefined) {
    return null;
  }
  const rest = address.slice(prefix.length);
  return { sandboxId, rest: rest.startsWith('/') ? rest : `/${rest}` };
}
