import type {
  ActionEvent,
  AgentErrorEvent,
  Condensation,
  MessageEvent,
  ObservationEvent,
  SystemPromptEvent,
} from '@slipway/agent-protocol/events.js';

const TIMESTAMP = '2026-01-31T12:00:00.000000';

/** A message of a user or an agent. */
export function messageEvent(id: string, source: 'user' | 'agent', text: string): MessageEvent {
  return {
    kind: 'MessageEvent',
    id,
    timestamp: TIMESTAMP,
    source,
    llm_message: { role: source === 'user' ? 'user' : 'assistant', content: [{ type: 'text', text }] },
    activated_skills: [],
    extended_content: [],
  };
}

/** A call of `think`; `id` is the call's id too. */
export function actionEvent(id: string, answer: string, changes: Partial<ActionEvent> = {}): ActionEvent {
  return {
    kind: 'ActionEvent',
    id,
    timestamp: TIMESTAMP,
    source: 'agent',
    thought: [],
    thinking_blocks: [],
    action: { kind: 'ThinkAction', thought: 'hm' },
    tool_name: 'think',
    tool_call_id: id,
    tool_call: { id, name: 'think', arguments: '{"thought":"hm"}', origin: 'completion' },
    llm_response_id: answer,
    security_risk: 'UNKNOWN',
    ...changes,
  };
}

/** The result of the call with this id. */
export function observationEvent(call: string, text: string): ObservationEvent {
  return {
    kind: 'ObservationEvent',
    id: `${call}-result`,
    timestamp: TIMESTAMP,
    source: 'environment',
    tool_name: 'think',
    tool_call_id: call,
    action_id: call,
    observation: { kind: 'ThinkObservation', content: [{ type: 'text', text }], is_error: false },
  };
}

/** A call that was closed with an error. */
export function errorEvent(call: string, error: string): AgentErrorEvent {
  return {
    kind: 'AgentErrorEvent',
    id: `${call}-result`,
    timestamp: TIMESTAMP,
    source: 'agent',
    tool_name: 'think',
    tool_call_id: call,
    error,
  };
}

export function systemPromptEvent(text: string): SystemPromptEvent {
  return {
    kind: 'SystemPromptEvent',
    id: 'system',
    timestamp: TIMESTAMP,
    source: 'agent',
    system_prompt: { type: 'text', text },
    tools: [],
  };
}

export function condensationEvent(
  id: string,
  forgotten: string[],
  summary: string,
  offset: number,
): Condensation {
  return {
    kind: 'Condensation',
    id,
    timestamp: TIMESTAMP,
    source: 'environment',
    forgotten_event_ids: forgotten,
    summary,
    summary_offset: offset,
    llm_response_id: `${id}-answer`,
  };
}
