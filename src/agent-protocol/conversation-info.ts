import type { CONVERSATION_STATUSES } from './conversation-statuses.js';
import type { ConfirmationPolicy, SecurityAnalyzer } from './conversation-policies.js';

export type ConversationStatus = (typeof CONVERSATION_STATUSES)[number];

export interface TokenUsage {
  model: string;
  prompt_tokens: number;
  completion_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  context_window: number;
  per_turn_token: number;
  response_id: string;
}

export interface MetricsSnapshot {
  model_name: string;
  /** USD. */
  accumulated_cost: number;
  max_budget_per_task: number | null;
  accumulated_token_usage: TokenUsage | null;
}

export interface Metrics extends MetricsSnapshot {
  costs: unknown[];
  response_latencies: unknown[];
  token_usages: TokenUsage[];
}

export interface ConversationStats {
  usage_to_metrics: Record<string, Metrics>;
}

/** A conversation as the agent server shows it; secrets are masked. */
export interface ConversationInfo {
  /** UUID with dashes. */
  id: string;
  agent: Record<string, unknown>;
  workspace: { kind: 'LocalWorkspace'; working_dir: string };
  persistence_dir: string;
  max_iterations: number;
  stuck_detection: boolean;
  execution_status: ConversationStatus;
  confirmation_policy: ConfirmationPolicy;
  security_analyzer: SecurityAnalyzer | null;
  activated_knowledge_skills: string[];
  blocked_actions: Record<string, string>;
  blocked_messages: Record<string, string>;
  stats: ConversationStats;
  secret_registry: { secret_sources: Record<string, Record<string, unknown>> };
  /** `was_running`: the server ended while the agent worked; `/run` goes on. */
  agent_state: { was_running?: boolean };
  title: string | null;
  metrics: MetricsSnapshot;
  /** ISO 8601 with zone. */
  created_at: string;
  updated_at: string;
}

export interface ConversationPage {
  items: ConversationInfo[];
  next_page_id: string | null;
}
