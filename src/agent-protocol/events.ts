import type { Action } from './actions.js';
import type { Content, TextContent } from './content.js';
import type { Observation } from './observations.js';
import type { ToolDefinition } from './tool-definition.js';

/*
 * Clients parse events strictly: a member that is not in these types fails the whole event.
 */

export type EventSource = 'agent' | 'user' | 'environment';

interface EventBase {
  id: string;
  /** ISO 8601, UTC, without a zone: `2026-01-31T12:00:00.000000`. */
  timestamp: string;
  source: EventSource;
}

/** A model's call of a tool, as the model wrote it. */
export interface ToolCall {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
  origin: 'completion' | 'responses';
}

export type ThinkingBlock =
  | { type: 'thinking'; thinking: string; signature?: string | null }
  | { type: 'redacted_thinking'; data: string };

export interface Message {
  role: 'user' | 'system' | 'assistant' | 'tool';
  content: Content[];
  tool_calls?: ToolCall[] | null;
  tool_call_id?: string | null;
  name?: string | null;
  reasoning_content?: string | null;
  thinking_blocks?: ThinkingBlock[];
}

export interface MessageEvent extends EventBase {
  kind: 'MessageEvent';
  llm_message: Message;
  llm_response_id?: string | null;
  activated_skills: string[];
  extended_content: TextContent[];
  sender?: string | null;
}

export type SecurityRisk = 'UNKNOWN' | 'LOW' | 'MEDIUM' | 'HIGH';

/** A tool call, written before the tool runs. */
export interface ActionEvent extends EventBase {
  kind: 'ActionEvent';
  source: 'agent';
  thought: TextContent[];
  reasoning_content?: string | null;
  thinking_blocks: ThinkingBlock[];
  /** Absent when the arguments could not be understood. */
  action?: Action | null;
  tool_name: string;
  tool_call_id: string;
  tool_call: ToolCall;
  llm_response_id: string;
  security_risk: SecurityRisk;
  summary?: string | null;
}

export interface ObservationEvent extends EventBase {
  kind: 'ObservationEvent';
  source: 'environment';
  tool_name: string;
  tool_call_id: string;
  observation: Observation;
  /** Id of the `ActionEvent`. */
  action_id: string;
}

/** A tool call that was closed without an observation: arguments not understood, tool failed, run interrupted. */
export interface AgentErrorEvent extends EventBase {
  kind: 'AgentErrorEvent';
  source: 'agent';
  tool_name: string;
  tool_call_id: string;
  error: string;
}

export interface UserRejectObservation extends EventBase {
  kind: 'UserRejectObservation';
  source: 'environment';
  tool_name: string;
  tool_call_id: string;
  rejection_reason: string;
  rejection_source: 'user' | 'hook';
  action_id: string;
}

export interface ConversationStateUpdateEvent extends EventBase {
  kind: 'ConversationStateUpdateEvent';
  source: 'environment';
  /** `full_state`, `execution_status` or `stats`. */
  key: string;
  value: unknown;
}

export interface PauseEvent extends EventBase {
  kind: 'PauseEvent';
  source: 'user';
}

export interface ConversationErrorEvent extends EventBase {
  kind: 'ConversationErrorEvent';
  /** Machine code, for example `MaxIterationsReached`. */
  code: string;
  /** One sentence that a person can act on. */
  detail: string;
}

export interface SystemPromptEvent extends EventBase {
  kind: 'SystemPromptEvent';
  source: 'agent';
  system_prompt: TextContent;
  tools: ToolDefinition[];
  dynamic_context?: TextContent | null;
}

/** From here on the model sees the summary in place of the forgotten events. */
export interface Condensation extends EventBase {
  kind: 'Condensation';
  source: 'environment';
  forgotten_event_ids: string[];
  summary?: string | null;
  /** Where in the remaining events the summary stands. */
  summary_offset?: number | null;
  llm_response_id: string;
}

/** One entry of a conversation's log. */
export type AgentEvent =
  | MessageEvent
  | ActionEvent
  | ObservationEvent
  | AgentErrorEvent
  | UserRejectObservation
  | ConversationStateUpdateEvent
  | PauseEvent
  | ConversationErrorEvent
  | SystemPromptEvent
  | Condensation;
