/** Hints about a tool's behaviour, as MCP has them. */
export interface ToolAnnotations {
  title?: string | null;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

interface ToolDefinitionBase {
  title: string;
  description: string;
  /** Kind of its actions, for example `TerminalAction`. */
  action_type: string;
  /** Kind of its observations. */
  observation_type?: string | null;
  annotations?: ToolAnnotations | null;
  meta?: Record<string, unknown> | null;
}

export interface BuiltInToolDefinition extends ToolDefinitionBase {
  kind: 'TerminalTool' | 'FileEditorTool' | 'TaskTrackerTool' | 'FinishTool' | 'ThinkTool';
}

/** A tool server's tool, and our own `web_search` and `create_pull_request`. */
export interface McpToolDefinition extends ToolDefinitionBase {
  kind: 'MCPToolDefinition';
  mcp_tool: { name: string; description?: string; inputSchema: Record<string, unknown> };
}

/** A tool that was offered to the model, as `SystemPromptEvent` lists it. */
export type ToolDefinition = BuiltInToolDefinition | McpToolDefinition;
