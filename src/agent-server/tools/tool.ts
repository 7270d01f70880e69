import { z } from 'zod';
import type { Action, Observation, ToolDefinition } from '../../agent-protocol/events.js';

/** Longest text that a tool shows the model. */
export const MAX_TOOL_TEXT = 30_000;

/** What stands where something was left out, in a group of its own. */
export const CUT_MARK = /(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)/;

/** Keeps the beginning and the end of a text and says how much is missing between them. */
export function clipText(text: string, limit: number = MAX_TOOL_TEXT): string {
  if (text.length <= limit) {
    return text;
  }
  const head = Math.ceil(limit / 2);
  return joinEnds(text.slice(0, head), text.slice(text.length - (limit - head)), text.length - limit);
}

/** @param missing characters between the two */
export function joinEnds(head: string, tail: string, missing: number): string {
  return `${head}\n[... ${missing} characters left out ...]\n${tail}`;
}

/** What a tool is told about the conversation that uses it. */
export interface ToolContext {
  /** Absolute. */
  workingDir: string;
  /** The whole environment of child processes. */
  environment: Record<string, string>;
  /** Ends what the tool is doing. */
  signal: AbortSignal;
}

/** A call whose arguments were understood. */
export interface PreparedCall {
  action: Action;
  /** @throws Error when the tool cannot do its work at all; a result that says "no" is an observation */
  run(context: ToolContext): Promise<Observation>;
}

/** The model's arguments do not fit; the message is written for the model. */
export class ToolInputError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolInputError';
  }
}

/** Something that the model may ask for. */
export abstract class Tool {
  /** As the model calls it; unique among the offered ones. */
  abstract readonly name: string;
  /** Written for the model. */
  abstract readonly description: string;
  /** Whether a user who wants to confirm is asked. */
  abstract readonly needsConfirmation: boolean;
  /** JSON schema of the arguments, an object. */
  abstract readonly inputSchema: Record<string, unknown>;

  /** @throws ToolInputError */
  abstract prepare(args: Record<string, unknown>): PreparedCall;
  /** For the `SystemPromptEvent`. */
  abstract definition(): ToolDefinition;
}

/** A tool whose arguments are described by a zod schema. */
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
      throw new ToolInputError(parsed.error.issues.map(describe).join('; '));
    }
    const input = parsed.data;
    return { action: this.toAction(input), run: async (context) => await this.run(input, context) };
  }

  abstract toAction(input: z.output<Schema>): Action;
  abstract run(input: z.output<Schema>, context: ToolContext): Promise<Observation>;
}

function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path.join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}
