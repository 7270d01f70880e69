import type {
  ACPToolCallEvent,
  ActionEvent,
  AgentErrorEvent,
  AgentEvent,
  ObservationEvent,
  UserRejectObservation,
} from '@slipway/agent-protocol/events.js';
import type { EngineHost, NewEvent } from './agent-engine.js';

export const UNKNOWN_RESULT = 'The call was interrupted; whether it had an effect is not known.';

export type ResultEvent = ObservationEvent | AgentErrorEvent | UserRejectObservation;

export function isResult(event: AgentEvent): event is ResultEvent {
  return (
    event.kind === 'ObservationEvent' ||
    event.kind === 'AgentErrorEvent' ||
    event.kind === 'UserRejectObservation'
  );
}

/** Tool calls without a result, oldest first. No model accepts a history that has one. */
export function openCalls(events: readonly AgentEvent[]): ActionEvent[] {
  const open = new Map<string, ActionEvent>();
  for (const event of events) {
    if (event.kind === 'ActionEvent') {
      open.set(event.tool_call_id, event);
    } else if (isResult(event)) {
      open.delete(event.tool_call_id);
    }
  }
  return [...open.values()];
}

/** Calls of an agent with tools of its own that have begun and not ended, oldest first. */
export function openAcpCalls(events: readonly AgentEvent[]): ACPToolCallEvent[] {
  const open = new Map<string, ACPToolCallEvent>();
  for (const event of events) {
    if (event.kind !== 'ACPToolCallEvent') {
      continue;
    }
    if (hasCallEnded(event)) {
      open.delete(event.tool_call_id);
    } else {
      open.set(event.tool_call_id, event);
    }
  }
  return [...open.values()];
}

export function hasCallEnded({ status }: Pick<ACPToolCallEvent, 'status'>): boolean {
  return status === 'completed' || status === 'failed';
}

export async function closeOpenCalls(host: EventWriter, error: string): Promise<void> {
  for (const call of openCalls(host.events())) {
    await host.append(callError(call, error));
  }
  await failAcpCalls(host, error);
}

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
  await failAcpCalls(host, `The user rejected the call: ${reason}`);
}

async function failAcpCalls(host: EventWriter, error: string): Promise<void> {
  for (const { tool_call_id, title, tool_kind, raw_input } of openAcpCalls(host.events())) {
    await host.append({
      kind: 'ACPToolCallEvent',
      source: 'agent',
      tool_call_id,
      title,
      tool_kind,
      raw_input,
      status: 'failed',
      content: [{ type: 'content', content: { type: 'text', text: error } }],
      is_error: true,
    });
  }
}

export function callError(
  { tool_name, tool_call_id }: Pick<ActionEvent, 'tool_name' | 'tool_call_id'>,
  error: string,
): NewEvent {
  return { kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error };
}

type EventWriter = Pick<EngineHost, 'events' | 'append'>;
