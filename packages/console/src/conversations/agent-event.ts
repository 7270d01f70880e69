interface TextPart {
  type: string;
  text?: string;
}

interface Thought {
  reasoning_content?: string | null;
  thinking_blocks?: { thinking?: string }[];
}

/** What a tool was asked for; which members there are depends on the tool. */
interface AgentAction {
  kind: string;
  command?: string;
  path?: string;
  thought?: string;
  message?: string;
  task_list?: { title: string; status: string }[];
  data?: Record<string, unknown>;
}

interface Observation {
  content?: TextPart[];
  is_error?: boolean;
  exit_code?: number | null;
  path?: string | null;
  old_content?: string | null;
  new_content?: string | null;
}

/** The members of all kinds that this page shows. */
export interface AgentEvent extends Thought {
  id: string;
  kind: string;
  timestamp: string;
  source: string;
  llm_message?: Thought & { content: TextPart[] };
  thought?: TextPart[];
  action?: AgentAction | null;
  tool_name?: string;
  tool_call_id?: string;
  tool_call?: { arguments: string };
  observation?: Observation;
  error?: string;
  rejection_reason?: string;
  key?: string;
  value?: unknown;
  code?: string;
  detail?: string;
  title?: string;
  status?: string | null;
  raw_input?: unknown;
  raw_output?: unknown;
}

/** A stream delivers each kind by its name. */
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
    if (call !== undefined) {
      // An agent that runs its own tools repeats the event when the call ends.
      call[event.kind === 'ACPToolCallEvent' ? 'event' : 'result'] = event;
    } else if (event.kind !== 'ConversationStateUpdateEvent') {
      const step = { event, result: null };
      steps.push(step);
      calls.set(event.tool_call_id ?? event.id, step);
    }
  }
  return steps;
}

export function textOf(parts: readonly TextPart[] | undefined): string {
  return (parts ?? []).map(({ type, text }) => text ?? `[${type}]`).join('\n');
}

export function thinkingOf({ llm_message: message, ...event }: AgentEvent): string {
  const { reasoning_content: reasoning, thinking_blocks: blocks } = message ?? event;
  return reasoning ?? (blocks ?? []).map(({ thinking }) => thinking ?? '').join('\n');
}

/** The latest state that the events tell, or null. */
export function statusOf(events: readonly AgentEvent[]): string | null {
  const last = events.findLast(({ key }) => key === 'execution_status');
  return typeof last?.value === 'string' ? last.value : null;
}
