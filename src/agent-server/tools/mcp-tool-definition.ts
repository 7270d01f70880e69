import type { McpToolDefinition } from '../../agent-protocol/tool-definition.js';
import type { Tool } from './tool.js';

/** How tools without a kind of their own are listed. */
export function mcpToolDefinition(tool: Tool): McpToolDefinition {
  return {
    kind: 'MCPToolDefinition',
    title: tool.name,
    description: tool.description,
    action_type: 'MCPToolAction',
    observation_type: 'MCPToolObservation',
    mcp_tool: { name: tool.name, description: tool.description, inputSchema: tool.inputSchema },
  };
}
