import type { Content } from './events.js';
import type { GitAccess } from './git.js';

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

export type ConfirmationPolicy =
  | { kind: 'NeverConfirm' }
  | { kind: 'AlwaysConfirm' }
  | {
      kind: 'ConfirmRisky';
      threshold: 'LOW' | 'MEDIUM' | 'HIGH' | 'UNKNOWN';
      confirm_unknown: boolean;
    };

export type PatternRule = readonly [pattern: string, description: string, id: string];

/** Without lists of its own, those of the agent server apply. */
export interface PatternSecurityAnalyzer {
  kind: 'PatternSecurityAnalyzer';
  high_patterns?: readonly PatternRule[];
  medium_patterns?: readonly PatternRule[];
  injection_high_patterns?: readonly PatternRule[];
  injection_medium_patterns?: readonly PatternRule[];
}

/** `LLMSecurityAnalyzer`: the model judges its own calls. */
export type SingleSecurityAnalyzer =
  { kind: 'LLMSecurityAnalyzer' } | { kind: 'PolicyRailSecurityAnalyzer' } | PatternSecurityAnalyzer;

export type SecurityAnalyzer =
  | SingleSecurityAnalyzer
  | {
      kind: 'EnsembleSecurityAnalyzer';
      analyzers: readonly SingleSecurityAnalyzer[];
      /** Whether one unknown verdict makes the whole unknown. */
      propagate_unknown: boolean;
    };

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
  accumulated_cost: number;
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
}

interface RemoteMcpServer {
  url: string;
  transport: 'sse' | 'http';
  headers?: Record<string, string>;
  tools?: string[];
}

export type McpServer = StdioMcpServer | RemoteMcpServer;

/** Tool servers by name; on the wire they are in `agent.mcp_config.mcpServers`. */
export type McpServers = Record<string, McpServer>;

interface StaticSecret {
  kind: 'StaticSecret';
  description?: string | null;
  value: string | null;
}

/** Fetched whenever it is needed, because it may change. */
interface LookupSecret {
  kind: 'LookupSecret';
  description?: string | null;
  url: string;
  headers?: Record<string, string>;
}

export type SecretSource = StaticSecret | LookupSecret;

export interface McpServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
  /** `sse`, or a name of streamable HTTP (`http`, `streamable-http`, `shttp`), which is the default. */
  transport?: string;
  headers?: Record<string, string>;
  auth?: string;
  /** Slipway extension: names of the offered tools; `*` stands for all. */
  tools?: string[];
}

/** Member names are the reference's; `acp_env` and `acp_auth_method` are Slipway extensions. */
export interface AcpAgentSpec {
  acp_command?: string[];
  acp_args?: string[];
  acp_env?: Record<string, string>;
  /** Null: the agent's own choice. */
  acp_model?: string | null;
  acp_session_mode?: string | null;
  acp_auth_method?: string | null;
}

/** Further members are kept and returned, but ignored. */
export interface AgentSpec extends AcpAgentSpec {
  kind: 'Agent' | 'ACPAgent';
  llm: {
    model: string;
    api_key?: string | null;
    base_url?: string | null;
    timeout?: number | null;
    input_cost_per_token?: number | null;
    output_cost_per_token?: number | null;
    usage_id?: string;
    [member: string]: unknown;
  };
  tools?: { name: string; params?: Record<string, unknown> }[];
  mcp_config?: { mcpServers?: Record<string, McpServerEntry> };
  condenser?: { kind: string; max_tokens?: number | null; [member: string]: unknown } | null;
  agent_context?: { system_message_suffix?: string | null; [member: string]: unknown } | null;
  [member: string]: unknown;
}

/** What our agent server accepts beyond the published schema. Budgets in USD, prices in USD per million tokens. */
interface SlipwayExtension {
  max_budget?: number | null;
  language?: string | null;
  search_api_key?: string | null;
  tavily_api_url?: string | null;
  model_prices?: Record<string, { input: number; output: number }>;
  /** Never written to disk: see `CredentialsRequest`. */
  git?: GitAccess | null;
  /** As in OUTBOUND_ALLOWLIST; null: any server. */
  outbound_allowlist?: string[] | null;
  /** JSON Schema of the `result` that the agent must pass to `finish`. */
  result_schema?: Record<string, unknown> | null;
}

export interface SendMessageRequest {
  role?: 'user';
  content: Content[];
  run?: boolean;
}

export interface StartConversationRequest {
  agent: AgentSpec;
  workspace: { kind: 'LocalWorkspace'; working_dir: string };
  /** UUID; if it exists already, the existing conversation is returned. */
  conversation_id?: string | null;
  confirmation_policy?: ConfirmationPolicy;
  security_analyzer?: SecurityAnalyzer | null;
  initial_message?: SendMessageRequest | null;
  max_iterations?: number;
  stuck_detection?: boolean;
  secrets?: Record<string, SecretSource | string>;
  tags?: Record<string, string> | null;
  slipway?: SlipwayExtension;
}

/** Restores secrets, which are never written to disk, and updates the given settings. Not in the published API. */
export interface CredentialsRequest {
  /** Tools may have changed the record on disk: after a restart, no model is called until a client names it again. */
  llm_model?: string;
  /** Null: the provider's own. */
  llm_base_url?: string | null;
  llm_api_key?: string | null;
  /** The user's key is for another server than the conversation's, which still needs a key of its own. */
  llm_key_withheld?: boolean;
  /** Members of `llm` in a start, kept while the model and its address stay. */
  llm_parameters?: Record<string, unknown> | null;
  search_api_key?: string | null;
  tavily_api_url?: string | null;
  mcp_config?: { mcpServers?: Record<string, McpServerEntry> };
  secrets?: Record<string, SecretSource | string>;
  git?: GitAccess | null;
  /** This member and those below it are stored, and take effect from the next step. */
  max_iterations?: number;
  max_budget?: number | null;
  /** USD per million tokens; replaces the known prices, because another model comes with its own. */
  model_prices?: Record<string, { input: number; output: number }>;
  language?: string | null;
  outbound_allowlist?: string[] | null;
  /** The record on disk does not decide how the agent is started. */
  acp?: AcpAgentSpec | null;
}
