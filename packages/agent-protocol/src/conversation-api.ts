import type { z } from 'zod';
import type {
  confirmationPolicySchema,
  credentialsSchema,
  mcpServerSchema,
  secretSourceSchema,
  securityAnalyzerSchema,
  startSchema,
} from './conversation-schemas.js';
import type { Content } from './events.js';

/** Values of `execution_status`; `deleting` appears only while a conversation is being removed. */
export const CONVERSATION_STATUSES = [
  'idle',
  'running',
  'paused',
  'waiting_for_confirmation',
  'finished',
  'error',
  'stuck',
  'deleting',
] as const;

export type ConfirmationPolicy = z.infer<typeof confirmationPolicySchema>;

export type SecurityAnalyzer = NonNullable<z.infer<typeof securityAnalyzerSchema>>;

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

/** Source of a cost; a sum has the least certain source of its parts. */
export const COST_SOURCES = ['provider', 'catalogue', 'unknown'] as const;
export type CostSource = (typeof COST_SOURCES)[number];

export interface MetricsSnapshot {
  model_name: string;
  accumulated_cost: number;
  /** Not in the published API. */
  cost_source?: CostSource;
  max_budget_per_task: number | null;
  accumulated_token_usage: TokenUsage | null;
}

interface Metrics extends MetricsSnapshot {
  costs: unknown[];
  response_latencies: unknown[];
  token_usages: TokenUsage[];
}

interface ConversationStats {
  usage_to_metrics: Record<string, Metrics>;
}

export interface ConversationFailure {
  code: string;
  detail: string;
}

export function hasFailed(status: ConversationStatus | null): boolean {
  return status === 'error' || status === 'stuck';
}

/** A conversation as the agent server shows it; secrets are masked. */
export interface ConversationInfo {
  id: string;
  agent: Record<string, unknown>;
  /** Modules of the SDK by tool name. */
  tool_module_qualnames: Record<string, string>;
  workspace: { kind: 'LocalWorkspace'; working_dir: string };
  persistence_dir: string;
  max_iterations: number;
  stuck_detection: boolean;
  execution_status: ConversationStatus;
  /** Not in the published API; set where the status says that the agent gave up. */
  error?: ConversationFailure;
  confirmation_policy: ConfirmationPolicy;
  security_analyzer: SecurityAnalyzer | null;
  activated_knowledge_skills: string[];
  blocked_actions: Record<string, string>;
  blocked_messages: Record<string, string>;
  stats: ConversationStats;
  secret_registry: { secret_sources: Record<string, Record<string, unknown>> };
  /** `was_running`: the server stopped while the agent was running; `/run` resumes it. */
  agent_state: {
    was_running?: boolean;
    /** Set for agents of the Agent Client Protocol, like `current_model_id` and the two members below it. */
    acp_agent_name?: string;
    acp_agent_version?: string;
    acp_capabilities?: Record<'load_session' | 'image' | 'mcp_http' | 'mcp_sse' | 'model_choice', boolean>;
  };
  current_model_id?: string | null;
  available_models?: { model_id: string; name: string | null; description: string | null }[];
  supports_runtime_model_switch?: boolean;
  title: string | null;
  tags: Record<string, string>;
  metrics: MetricsSnapshot;
  /** ISO 8601 with zone. */
  created_at: string;
  updated_at: string;
}

interface StdioMcpServer {
  command: string;
  args?: string[];
  env?: Record<string, string>;
  tools?: string[];
  start_timeout_seconds?: number;
}

interface RemoteMcpServer {
  url: string;
  transport: 'sse' | 'http';
  headers?: Record<string, string>;
  tools?: string[];
  start_timeout_seconds?: number;
}

export type McpServer = StdioMcpServer | RemoteMcpServer;

/** Tool servers by name; on the wire they are in `agent.mcp_config`. */
export type McpServers = Record<string, McpServer>;

export type SecretSource = Exclude<z.input<typeof secretSourceSchema>, string>;

export type McpServerEntry = z.input<typeof mcpServerSchema>;

export type AgentSpec = z.input<typeof startSchema>['agent'];

export type AcpAgentSpec = NonNullable<CredentialsRequest['acp']>;

export interface SendMessageRequest {
  role?: 'user';
  content: Content[];
  run?: boolean;
  /** Our server alone knows it, and the following one. */
  id?: string;
  sender_conversation_id?: string;
}

export type StartConversationRequest = z.input<typeof startSchema>;

/** Restores secrets, which are never written to disk, and updates the given settings. Not in the published API. */
export type CredentialsRequest = z.input<typeof credentialsSchema>;
