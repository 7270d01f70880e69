import { randomUUID } from 'node:crypto';
import type { Action, SecurityRisk } from '@slipway/agent-protocol/events.js';
import type { NewEvent } from '../agent-engine.js';
import type { OriginalPart, OriginalResponse } from '../agent-engine.js';
import type { RequestedCall, ModelResponse } from './model-call.js';

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

/** The response as it must be executed and sent back. The parts' order matters only where some are signed. */
export function toOriginal(response: ModelResponse, origin: string): OriginalResponse {
  const { id, text, calls, message } = response;
  const ordered = response.parts.filter((part) => part.type === 'call');
  const ownCalls = calls.map((call, index) => ({
    type: 'call' as const,
    ...call,
    opaque: ordered[index]?.opaque ?? null,
  }));
  if (response.parts.some((part) => part.type !== 'call' && part.opaque !== null)) {
    const left = [...ownCalls];
    const parts = response.parts.map((part) => (part.type === 'call' ? (left.shift() ?? part) : part));
    return { id, origin, message, parts };
  }
  // Without what stood in tags among the text: no server takes that back as a member of its own.
  const reasoning = response.parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
  const texts: OriginalPart[] = [
    { type: 'reasoning', text: reasoning.join(''), opaque: null },
    { type: 'text', text, opaque: null },
  ];
  const parts = [...texts.filter((part) => part.type !== 'call' && part.text !== ''), ...ownCalls];
  return { id, origin, message, parts };
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

/** Gives calls ids that are unique in the conversation: small servers number them per response, or send none. */
export function withUniqueIds(response: ModelResponse, taken: ReadonlySet<string>): ModelResponse {
  const seen = new Set(taken);
  const calls = response.calls.map((call) => {
    const id = call.id === '' || seen.has(call.id) ? `call_${randomUUID().replaceAll('-', '')}` : call.id;
    seen.add(id);
    return { ...call, id };
  });
  const id = response.id === '' || taken.has(response.id) ? randomUUID() : response.id;
  return { ...response, id, calls };
}
