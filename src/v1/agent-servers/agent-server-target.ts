/** An agent server that runs right now, and what it wants to see. */
export interface AgentServerTarget {
  /** Without a trailing slash: `http://127.0.0.1:41234`. */
  address: string;
  sessionKey: string;
}
