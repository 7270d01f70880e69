import type { ConversationState } from './conversation-state.js';
import { openCalls } from './open-calls.js';

/** Gives every tool call without a result an error for one, so that the model's history is whole. */
export async function closeOpenCalls(state: ConversationState, error: string): Promise<void> {
  for (const { tool_name, tool_call_id } of openCalls(state.events())) {
    await state.append({ kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error });
  }
}
