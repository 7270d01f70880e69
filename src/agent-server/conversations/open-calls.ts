import type { ActionEvent, AgentEvent } from '../../agent-protocol/events.js';

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
