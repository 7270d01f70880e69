/** A tool server that is started as a child process and spoken to over its standard streams. */
export interface StdioMcpServer {
  command: string;
  args?: string[];
  env?: Record<string, string>;
}

/** A tool server behind a URL. */
export interface RemoteMcpServer {
  url: string;
  transport: 'sse' | 'http';
  headers?: Record<string, string>;
}

export type McpServer = StdioMcpServer | RemoteMcpServer;

/** Tool servers by name; on the wire this stands below `agent.mcp_config.mcpServers`. */
export type McpServers = Record<string, McpServer>;
