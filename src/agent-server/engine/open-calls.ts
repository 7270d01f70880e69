import type { ActionEvent, AgentEvent } from '../../agent-protocol/events.js';
import type { EngineHost, NewEvent } from './agent-engine.js';

/** Tool calls without a result, oldest first. No model accepts a history that has one. */
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

/** Closes every open call with an error in place of its result. */
export async function closeOpenCalls(host: EventWriter, error: string): Promise<void> {
  for (const call of openCalls(host.events())) {
    await host.append(callError(call, error));
  }
}

/** Closes every open call with the user's refusal. */
export async function rejectOpenCalls(host: EventWriter, reason: string): Promise<void> {
  for (const { id, tool_name, tool_call_id } of openCalls(host.events())) {
    await host.append({
      kind: 'UserRejectObservation',
      source: 'environment',
      tool_name,
      tool_call_id,
      rejection_reason: reason,
      rejection_source: 'user',
      action_id: id,
    });
  }
}

/** The event that closes a call without a result. */
export function callError(
  { tool_name, tool_call_id }: Pick<ActionEvent, 'tool_name' | 'tool_call_id'>,
  error: string,
): NewEvent {
  return { kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error };
}

type EventWriter = Pick<EngineHost, 'events' | 'append'>;
