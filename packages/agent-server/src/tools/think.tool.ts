import { z } from 'zod';
import { builtInTool } from './tool.js';

export const thinkTool = builtInTool('Think', {
  name: 'think',
  description:
    'Note down a thought: weigh options, plan a difficult change, reason about a failure. It changes nothing and ' +
    'fetches nothing; the thought stays in the conversation.',
  needsConfirmation: false,
  schema: z.object({ thought: z.string().describe('The thought to note down.') }),
  toAction: ({ thought }) => ({ kind: 'ThinkAction', thought }),
  run: async () => ({
    kind: 'ThinkObservation',
    content: [{ type: 'text', text: 'Noted.' }],
    is_error: false,
  }),
});
