import { z } from 'zod';
import type { ThinkAction, ThinkObservation } from '@slipway/agent-protocol/events.js';
import { BuiltInTool } from './tool.js';

const schema = z.object({ thought: z.string().describe('The thought to note down.') });

export class ThinkTool extends BuiltInTool<typeof schema> {
  readonly kind = 'Think';
  readonly name = 'think';
  readonly description =
    'Note down a thought: weigh options, plan a difficult change, reason about a failure. It changes nothing and ' +
    'fetches nothing; the thought stays in the conversation.';
  readonly needsConfirmation = false;
  readonly schema = schema;

  toAction({ thought }: z.output<typeof schema>): ThinkAction {
    return { kind: 'ThinkAction', thought };
  }

  async run(): Promise<ThinkObservation> {
    return { kind: 'ThinkObservation', content: [{ type: 'text', text: 'Noted.' }], is_error: false };
  }
}
