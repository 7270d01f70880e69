import type { ActionEvent, AgentEvent } from '../../agent-protocol/events.js';
import type { ConversationState } from './conversation-state.js';

/** Tool calls without a result, oldest first. A model accepts no history that has one. */
export function openCalls(events: readonly AgentEvent[]): ActionEvent[] {
  const open = new Map<string, ActionEvent>();
  for (const event of events) {
    if (event.kind === 'ActionEvent') {
      open.set(event.tool_call_id, event);
    } else if (
      event.kind === 'ObservationEvent' ||
      event.kind === 'AgentErrorEvent' ||
      event.kind === 'UserRejectObservation'
    ) {
      open.delete(event.tool_call_id);
    }
  }
  return [...open.values()];
}

/** Gives every tool call without a result an error for one, so that the model's history is whole. */
export async function closeOpenCalls(state: ConversationState, error: string): Promise<void> {
  for (const { tool_name, tool_call_id } of openCalls(state.events())) {
    await state.append({ kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error });
  }
}
