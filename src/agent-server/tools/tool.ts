import type { Action } from '../../agent-protocol/actions.js';
import type { Observation } from '../../agent-protocol/observations.js';
import type { ToolDefinition } from '../../agent-protocol/tool-definition.js';

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
