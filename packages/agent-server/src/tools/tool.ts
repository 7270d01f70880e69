import type {
  Action,
  McpToolDefinition,
  Observation,
  ToolDefinition,
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

export interface Tool {
  /** Name that the model calls it by; unique among the offered tools. */
  readonly name: string;
  readonly description: string;
  /** Whether a user who wants to confirm calls is asked. */
  readonly needsConfirmation: boolean;
  readonly inputSchema: Record<string, unknown>;
  /** What servers refuse in the schema that its author wrote, in words for the user. */
  readonly repairs: readonly string[];
  readonly definition: ToolDefinition;

  /** @throws ToolInputError */
  prepare(args: Record<string, unknown>): PreparedCall;
}

/** Model APIs accept no other names of tools. */
export const MAX_TOOL_NAME = 64;

export function cleanToolName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_TOOL_NAME) || 'tool';
}

interface ToolText {
  name: string;
  description: string;
}

/** The definition of a tool for which the protocol has no kind of its own. */
export function mcpToolDefinition(
  { name, description }: ToolText,
  inputSchema: Record<string, unknown>,
): McpToolDefinition {
  return {
    kind: 'MCPToolDefinition',
    title: name,
    description,
    action_type: 'MCPToolAction',
    observation_type: 'MCPToolObservation',
    mcp_tool: { name, description, inputSchema },
  };
}

type BuiltInKind = 'Terminal' | 'FileEditor' | 'TaskTracker' | 'Finish' | 'Think';

export function builtInDefinition(kind: BuiltInKind, { name, description }: ToolText): ToolDefinition {
  return {
    kind: `${kind}Tool`,
    title: name,
    description,
    action_type: `${kind}Action`,
    observation_type: `${kind}Observation`,
  };
}

interface SchemaTool<Schema extends z.ZodObject, Result> extends ToolText {
  needsConfirmation: boolean;
  schema: Schema;
  run(input: z.output<Schema>, context: ToolContext): Promise<Result>;
}

/** Makes a tool that the protocol knows by a kind, which its actions and observations share. */
export function builtInTool<Schema extends z.ZodObject>(
  kind: BuiltInKind,
  tool: SchemaTool<Schema, Observation> & { toAction(input: z.output<Schema>): Action },
): Tool {
  return schemaTool(tool, builtInDefinition(kind, tool), (input) => ({
    action: tool.toAction(input),
    run: async (context) => await tool.run(input, context),
  }));
}

/** Makes a tool without a kind of its own in the protocol: its events look like those of a tool server's tool. */
export function mcpSchemaTool<Schema extends z.ZodObject>(
  tool: SchemaTool<Schema, { text: string; isError: boolean }>,
): Tool {
  return schemaTool(tool, mcpToolDefinition(tool, inputSchemaOf(tool.schema)), (input) => ({
    action: { kind: 'MCPToolAction', data: input },
    run: async (context) => {
      const { text, isError } = await tool.run(input, context);
      const content = [{ type: 'text' as const, text: clipText(text) }];
      return { kind: 'MCPToolObservation', content, is_error: isError, tool_name: tool.name };
    },
  }));
}

function schemaTool<Schema extends z.ZodObject>(
  { name, description, needsConfirmation, schema }: Omit<SchemaTool<Schema, unknown>, 'run'>,
  definition: ToolDefinition,
  prepare: (input: z.output<Schema>) => PreparedCall,
): Tool {
  return {
    name,
    description,
    needsConfirmation,
    inputSchema: inputSchemaOf(schema),
    repairs: [],
    definition,
    prepare: (args) => prepare(parseInput(schema, args)),
  };
}

function inputSchemaOf(schema: z.ZodObject): Record<string, unknown> {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: 'input' });
  return inputSchema;
}

function parseInput<Schema extends z.ZodObject>(schema: Schema, args: unknown): z.output<Schema> {
  const parsed = schema.safeParse(args);
  if (!parsed.success) {
    throw new ToolInputError(parsed.error.issues.map(describeIssue).join('; '));
  }
  return parsed.data;
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}
