import { z } from 'zod';
import type { FinishAction, FinishObservation, ToolDefinition } from '../../agent-protocol/events.js';
import { SchemaTool } from './schema-tool.js';

const schema = z.object({
  message: z.string().describe('What was done, how it was checked, what is left; for the user.'),
});

/** Ends the agent's run. */
export class FinishTool extends SchemaTool<typeof schema> {
  readonly name = 'finish';
  readonly description =
    'End your work: the task is done, or you cannot go on without the user. Call it alone, as your last call.';
  readonly needsConfirmation = false;
  readonly schema = schema;

  toAction({ message }: z.output<typeof schema>): FinishAction {
    return { kind: 'FinishAction', message };
  }

  async run({ message }: z.output<typeof schema>): Promise<FinishObservation> {
    return { kind: 'FinishObservation', content: [{ type: 'text', text: message }], is_error: false };
  }

  definition(): ToolDefinition {
    return {
      kind: 'FinishTool',
      title: this.name,
      description: this.description,
      action_type: 'FinishAction',
      observation_type: 'FinishObservation',
    };
  }
}
