import { randomUUID } from 'node:crypto';
import type { Action, SecurityRisk } from '../../../agent-protocol/events.js';
import type { NewEvent } from '../agent-engine.js';
import type { RequestedCall, StepAnswer } from './model-step.js';

/** An answer in words. */
export function messageOf(answer: StepAnswer): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'agent',
    llm_message: {
      role: 'assistant',
      content: [{ type: 'text', text: answer.text }],
      reasoning_content: answer.reasoning === '' ? null : answer.reasoning,
    },
    llm_response_id: answer.id,
    activated_skills: [],
    extended_content: [],
  };
}

export interface CallMeaning {
  /** null: not understood. */
  action: Action | null;
  risk: SecurityRisk;
}

/** One call of an answer; the first carries what the model said and thought before. */
export function actionOf(
  answer: StepAnswer,
  call: RequestedCall,
  isFirst: boolean,
  { action, risk }: CallMeaning,
): NewEvent {
  const says = isFirst && answer.text.trim() !== '';
  return {
    kind: 'ActionEvent',
    source: 'agent',
    thought: says ? [{ type: 'text', text: answer.text }] : [],
    reasoning_content: isFirst && answer.reasoning !== '' ? answer.reasoning : null,
    thinking_blocks: [],
    action,
    tool_name: call.name,
    tool_call_id: call.id,
    tool_call: { id: call.id, name: call.name, arguments: call.arguments, origin: 'completion' },
    llm_response_id: answer.id,
    security_risk: risk,
  };
}

/**
 * The same answer with ids that are unique in the conversation: small servers count calls anew in each answer, and
 * some give no id at all.
 */
export function withUniqueIds(answer: StepAnswer, taken: ReadonlySet<string>): StepAnswer {
  const seen = new Set(taken);
  const calls = answer.calls.map((call) => {
    const id = call.id === '' || seen.has(call.id) ? `call_${randomUUID()}` : call.id;
    seen.add(id);
    return { ...call, id };
  });
  const id = answer.id === '' || taken.has(answer.id) ? randomUUID() : answer.id;
  return { ...answer, id, calls };
}
