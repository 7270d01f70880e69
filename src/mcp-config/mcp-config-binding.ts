/** What a user's encrypted MCP secrets are bound to: copied to another user's row they do not decrypt. */
export function mcpConfigBinding(userId: string): string {
  return `mcp_configs.secrets:${userId}`;
}
