import { z } from 'zod';
import type {
  Action,
  MCPToolAction,
  MCPToolObservation,
  Observation,
  ToolDefinition,
} from '@slipway/agent-protocol/events.js';
import { clipText } from '../clipped-text.js';
import { mcpToolDefinition, type PreparedCall, Tool, type ToolContext, ToolInputError } from './tool.js';

export abstract class SchemaTool<Schema extends z.ZodObject> extends Tool {
  abstract readonly schema: Schema;
  #inputSchema: Record<string, unknown> | null = null;

  get inputSchema(): Record<string, unknown> {
    if (this.#inputSchema === null) {
      const { $schema: _, ...schema } = z.toJSONSchema(this.schema, { io: 'input' });
      this.#inputSchema = schema;
    }
    return this.#inputSchema;
  }

  prepare(args: Record<string, unknown>): PreparedCall {
    const parsed = this.schema.safeParse(args);
    if (!parsed.success) {
      throw new ToolInputError(parsed.error.issues.map(describeIssue).join('; '));
    }
    const input = parsed.data;
    return { action: this.toAction(input), run: async (context) => await this.run(input, context) };
  }

  abstract toAction(input: z.output<Schema>): Action;
  abstract run(input: z.output<Schema>, context: ToolContext): Promise<Observation>;
}

/** For tools without a kind of their own in the protocol: their events look like those of a tool server's tool. */
export abstract class McpSchemaTool<Schema extends z.ZodObject> extends SchemaTool<Schema> {
  toAction(input: z.output<Schema>): MCPToolAction {
    return { kind: 'MCPToolAction', data: input };
  }

  definition(): ToolDefinition {
    return mcpToolDefinition(this);
  }

  protected observe(text: string, isError: boolean): MCPToolObservation {
    return {
      kind: 'MCPToolObservation',
      content: [{ type: 'text', text: clipText(text) }],
      is_error: isError,
      tool_name: this.name,
    };
  }
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}
