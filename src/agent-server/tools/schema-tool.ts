import { z } from 'zod';
import type { Action } from '../../agent-protocol/actions.js';
import type { Observation } from '../../agent-protocol/observations.js';
import { type PreparedCall, Tool, type ToolContext, ToolInputError } from './tool.js';

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
