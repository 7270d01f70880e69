import type {
  Action,
  McpToolDefinition,
  Observation,
  ToolDefinition,
  MCPToolAction,
  MCPToolObservation,
} from '@slipway/agent-protocol/events.js';
import { z } from 'zod';
import { clipText } from '../clipped-text.js';

export interface ToolContext {
  workingDir: string;
  environment: Record<string, string>;
  signal: AbortSignal;
}

export interface PreparedCall {
  action: Action;
  /** @throws Error when the tool fails as such; a negative result is an observation */
  run(context: ToolContext): Promise<Observation>;
}

/** Invalid arguments of a call. The message is written for the model. */
export class ToolInputError extends Error {
  override readonly name = 'ToolInputError';
}

/** @throws ToolInputError when the model has left out what it must give here */
export function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) {
    throw new ToolInputError(`This call needs ${name}.`);
  }
  return value;
}

export abstract class Tool {
  /** As the model calls it; unique among the offered tools. */
  abstract readonly name: string;
  abstract readonly description: string;
  /** Whether a user who wants to confirm calls is asked. */
  abstract readonly needsConfirmation: boolean;
  abstract readonly inputSchema: Record<string, unknown>;
  /** What servers refuse in the schema that its author wrote, in words for the user. */
  readonly repairs: readonly string[] = [];

  /** @throws ToolInputError */
  abstract prepare(args: Record<string, unknown>): PreparedCall;
  abstract definition(): ToolDefinition;
}

/** Model APIs accept no other names of tools. */
export const MAX_TOOL_NAME = 64;

export function cleanToolName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_TOOL_NAME) || 'tool';
}

/** The definition of a tool for which the protocol has no kind of its own. */
export function mcpToolDefinition({ name, description, inputSchema }: Tool): McpToolDefinition {
  return {
    kind: 'MCPToolDefinition',
    title: name,
    description,
    action_type: 'MCPToolAction',
    observation_type: 'MCPToolObservation',
    mcp_tool: { name, description, inputSchema },
  };
}

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

/** For tools that the protocol knows by a kind, which its actions and observations share. */
export abstract class BuiltInTool<Schema extends z.ZodObject> extends SchemaTool<Schema> {
  abstract readonly kind: BuiltInKind;

  definition(): ToolDefinition {
    return builtInDefinition(this.kind, this);
  }
}

type BuiltInKind = 'Terminal' | 'FileEditor' | 'TaskTracker' | 'Finish' | 'Think';

export function builtInDefinition(kind: BuiltInKind, { name, description }: Tool): ToolDefinition {
  return {
    kind: `${kind}Tool`,
    title: name,
    description,
    action_type: `${kind}Action`,
    observation_type: `${kind}Observation`,
  };
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
