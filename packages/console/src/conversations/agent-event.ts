import type { Schemas } from '../api/client.js';

export interface TextPart {
  type: string;
  text?: string;
}

/** What a tool was asked for; which members there are depends on the tool. */
export interface AgentAction {
  kind: string;
  command?: string;
  path?: string;
  thought?: string;
  message?: string;
  file_text?: string | null;
  task_list?: { title: string; status: string }[];
  data?: Record<string, unknown>;
}

export interface Observation {
  kind: string;
  content?: TextPart[];
  is_error?: boolean;
  exit_code?: number | null;
  path?: string | null;
  old_content?: string | null;
  new_content?: string | null;
}

/** The members of all kinds that this page shows. */
export interface AgentEvent extends Partial<Schemas['Event']> {
  id: string;
  kind: string;
  timestamp: string;
  source: string;
  llm_message?: { content: TextPart[]; reasoning_content?: string | null; thinking_blocks?: Thinking[] };
  thought?: TextPart[];
  reasoning_content?: string | null;
  thinking_blocks?: Thinking[];
  action?: AgentAction | null;
  tool_name?: string;
  tool_call_id?: string;
  tool_call?: { arguments: string };
  action_id?: string;
  security_risk?: string;
  observation?: Observation;
  error?: string;
  rejection_reason?: string;
  key?: string;
  value?: unknown;
  code?: string;
  detail?: string;
  title?: string;
  status?: string | null;
  is_error?: boolean;
  raw_input?: unknown;
  raw_output?: unknown;
}

interface Thinking {
  thinking?: string;
}

/** The kinds whose events a stream delivers by name. */
export const KINDS = [
  'MessageEvent',
  'ActionEvent',
  'ObservationEvent',
  'AgentErrorEvent',
  'UserRejectObservation',
  'ACPToolCallEvent',
  'ConversationStateUpdateEvent',
  'PauseEvent',
  'ConversationErrorEvent',
  'Condensation',
];

/** A call of a tool with what became of it. */
export interface Step {
  event: AgentEvent;
  result: AgentEvent | null;
}

/** The events in their order; what a tool returned stands with its call. */
export function stepsOf(events: readonly AgentEvent[]): Step[] {
  const steps: Step[] = [];
  const calls = new Map<string, Step>();
  for (const event of events) {
    const call = event.kind === 'ActionEvent' ? undefined : calls.get(event.tool_call_id ?? '');
    if (call !== undefined && event.kind === 'ACPToolCallEvent') {
      // An agent that runs its own tools repeats the event when the call ends.
      call.event = event;
    } else if (call !== undefined) {
      call.result = event;
    } else if (event.kind !== 'ConversationStateUpdateEvent') {
      const step = { event, result: null };
      steps.push(step);
      if (event.tool_call_id !== undefined) {
        calls.set(event.tool_call_id, step);
      }
    }
  }
  return steps;
}

export function textOf(parts: readonly TextPart[] | undefined): string {
  return (parts ?? []).map(({ type, text }) => text ?? `[${type}]`).join('\n');
}

export function thinkingOf(event: AgentEvent): string {
  const { reasoning_content: reasoning, thinking_blocks: blocks } = event.llm_message ?? event;
  return reasoning ?? (blocks ?? []).map(({ thinking }) => thinking ?? '').join('\n');
}

/** The latest state that the events tell, or null. */
export function statusOf(events: readonly AgentEvent[]): string | null {
  const last = events.findLast(({ key }) => key === 'execution_status');
  return typeof last?.value === 'string' ? last.value : null;
}
