import { z } from 'zod';
import type {
  FinishAction,
  FinishObservation,
  ThinkAction,
  ThinkObservation,
  ToolDefinition,
} from '../../agent-protocol/events.js';
import { SchemaTool } from './tool.js';

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

const schemaOfThinkTool = z.object({ thought: z.string().describe('The thought to note down.') });

/** Lets a model reason in the open; nothing happens. */
export class ThinkTool extends SchemaTool<typeof schemaOfThinkTool> {
  readonly name = 'think';
  readonly description =
    'Note down a thought: weigh options, plan a difficult change, reason about a failure. It changes nothing and ' +
    'fetches nothing; the thought stays in the conversation.';
  readonly needsConfirmation = false;
  readonly schema = schemaOfThinkTool;

  toAction({ thought }: z.output<typeof schemaOfThinkTool>): ThinkAction {
    return { kind: 'ThinkAction', thought };
  }

  async run(): Promise<ThinkObservation> {
    return { kind: 'ThinkObservation', content: [{ type: 'text', text: 'Noted.' }], is_error: false };
  }

  definition(): ToolDefinition {
    return {
      kind: 'ThinkTool',
      title: this.name,
      description: this.description,
      action_type: 'ThinkAction',
      observation_type: 'ThinkObservation',
    };
  }
}
