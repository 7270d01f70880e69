import { randomUUID } from 'node:crypto';
import type { Action, SecurityRisk } from '../../../agent-protocol/events.js';
import type { NewEvent } from '../agent-engine.js';
import type { RequestedCall, ModelResponse } from './model-call.js';

/** The message of a response without calls. */
export function toMessageEvent(response: ModelResponse): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'agent',
    llm_message: {
      role: 'assistant',
      content: [{ type: 'text', text: response.text }],
      reasoning_content: response.reasoning === '' ? null : response.reasoning,
    },
    llm_response_id: response.id,
    activated_skills: [],
    extended_content: [],
  };
}

export interface CallMeaning {
  /** null: the call is invalid. */
  action: Action | null;
  risk: SecurityRisk;
}

/** One call of a response; the first carries the text and the reasoning before it. */
export function toActionEvent(
  response: ModelResponse,
  call: RequestedCall,
  isFirst: boolean,
  { action, risk }: CallMeaning,
): NewEvent {
  const hasText = isFirst && response.text.trim() !== '';
  return {
    kind: 'ActionEvent',
    source: 'agent',
    thought: hasText ? [{ type: 'text', text: response.text }] : [],
    reasoning_content: isFirst && response.reasoning !== '' ? response.reasoning : null,
    thinking_blocks: [],
    action,
    tool_name: call.name,
    tool_call_id: call.id,
    tool_call: { id: call.id, name: call.name, arguments: call.arguments, origin: 'completion' },
    llm_response_id: response.id,
    security_risk: risk,
  };
}

/**
 * The same response with ids that are unique in the conversation: small model servers number the calls of each response
 * from the start, and some send no ids at all.
 */
export function withUniqueIds(response: ModelResponse, taken: ReadonlySet<string>): ModelResponse {
  const seen = new Set(taken);
  const calls = response.calls.map((call) => {
    const id = call.id === '' || seen.has(call.id) ? `call_${randomUUID()}` : call.id;
    seen.add(id);
    return { ...call, id };
  });
  const id = response.id === '' || taken.has(response.id) ? randomUUID() : response.id;
  return { ...response, id, calls };
}
