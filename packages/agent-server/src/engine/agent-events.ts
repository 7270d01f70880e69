import {
  type ACPToolCallEvent,
  type ActionEvent,
  type AgentErrorEvent,
  type AgentEvent,
  contentText,
  isOfAnotherAgent,
  type Observation,
  type ObservationEvent,
  type UserRejectObservation,
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

export type LoggedCall = Pick<ActionEvent, 'id' | 'tool_name' | 'tool_call_id'>;

export function callResult({ id, tool_name, tool_call_id }: LoggedCall, observation: Observation): NewEvent {
  const ids = { tool_name, tool_call_id, action_id: id };
  return { kind: 'ObservationEvent', source: 'environment', ...ids, observation };
}

export function callError({ tool_name, tool_call_id }: LoggedCall, error: string): NewEvent {
  return { kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error };
}

type EventWriter = Pick<EngineHost, 'events' | 'append'>;

/** Sent to the agent after an answer that was cut. */
export const CONTINUE =
  'Your answer was cut at the limit of its length. Go on exactly where it ends; repeat nothing and do not comment on this.';

export function messageToAgent(text: string): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'environment',
    llm_message: { role: 'user', content: [{ type: 'text', text }] },
    activated_skills: [],
    extended_content: [],
  };
}

export function messageOfAgent(text: string, reasoning: string, responseId?: string): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'agent',
    llm_message: {
      role: 'assistant',
      content: [{ type: 'text', text }],
      reasoning_content: reasoning.trim() === '' ? null : reasoning,
    },
    llm_response_id: responseId,
    activated_skills: [],
    extended_content: [],
  };
}

export function isContinuation(event: AgentEvent): boolean {
  if (event.kind !== 'MessageEvent' || event.source !== 'environment') {
    return false;
  }
  const [part] = event.llm_message.content;
  return part?.type === 'text' && part.text === CONTINUE;
}

/** The text of the agent's last message, with the parts before it that were cut, or of its last call of `finish`. */
export function finalAnswer(events: readonly AgentEvent[]): string {
  const parts: string[] = [];
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index];
    if (event?.kind === 'ActionEvent' && event.action?.kind === 'FinishAction' && parts.length === 0) {
      return event.action.message;
    }
    if (event?.kind === 'MessageEvent' && event.source === 'agent' && !isOfAnotherAgent(event)) {
      parts.unshift(contentText(event.llm_message.content));
      const before = events[index - 1];
      if (before === undefined || !isContinuation(before)) {
        break;
      }
    }
  }
  return parts.join('');
}
