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

/** Which tool calls the user must confirm. */
export type ConfirmationPolicy =
  | { kind: 'NeverConfirm' }
  | { kind: 'AlwaysConfirm' }
  | {
      kind: 'ConfirmRisky';
      /** Calls of this risk and above need confirmation. */
      threshold: 'LOW' | 'MEDIUM' | 'HIGH' | 'UNKNOWN';
      /** Whether calls of unknown risk need it too. */
      confirm_unknown: boolean;
    };

/** A regular expression, what it finds, and its id. */
export type PatternRule = readonly [pattern: string, description: string, id: string];

/** Signatures; without lists of its own those that the agent server has. */
export interface PatternSecurityAnalyzer {
  kind: 'PatternSecurityAnalyzer';
  /** Tried on what would be executed. */
  high_patterns?: readonly PatternRule[];
  medium_patterns?: readonly PatternRule[];
  /** Tried on what the model thinks, too. */
  injection_high_patterns?: readonly PatternRule[];
  injection_medium_patterns?: readonly PatternRule[];
}

/** One who judges by himself: with `LLMSecurityAnalyzer` the model itself. */
export type SingleSecurityAnalyzer =
  { kind: 'LLMSecurityAnalyzer' } | { kind: 'PolicyRailSecurityAnalyzer' } | PatternSecurityAnalyzer;

/** Who judges the risk of a tool call. */
export type SecurityAnalyzer =
  | SingleSecurityAnalyzer
  | {
      kind: 'EnsembleSecurityAnalyzer';
      analyzers: readonly SingleSecurityAnalyzer[];
      /** Whether one that cannot tell makes the whole unknown. */
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
  /** USD. */
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

/** Why a conversation has ended; `detail` is a sentence for its user. */
export interface ConversationFailure {
  code: string;
  detail: string;
}

/** Whether a status says that the agent gave up. */
export function hasFailed(status: ConversationStatus | null): boolean {
  return status === 'error' || status === 'stuck';
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
  /** Not in the published API: only set where `execution_status` says that the agent gave up. */
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
    /** Only set for agents that are not our own. */
    acp_agent_name?: string;
    acp_agent_version?: string;
    acp_capabilities?: Record<'load_session' | 'image' | 'mcp_http' | 'mcp_sse' | 'model_choice', boolean>;
  };
  /** Only set for agents that are not our own. */
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

/** A tool server that runs as a child process and communicates over its standard streams. */
interface StdioMcpServer {
  command: string;
  args?: string[];
  env?: Record<string, string>;
  /** Names of the tools that are offered; all without it. */
  tools?: string[];
}

/** A tool server behind a URL. */
interface RemoteMcpServer {
  url: string;
  transport: 'sse' | 'http';
  headers?: Record<string, string>;
  tools?: string[];
}

export type McpServer = StdioMcpServer | RemoteMcpServer;

/** Tool servers by name; on the wire they are in `agent.mcp_config.mcpServers`. */
export type McpServers = Record<string, McpServer>;

/** A secret given by value. */
interface StaticSecret {
  kind: 'StaticSecret';
  description?: string | null;
  value: string | null;
}

/** A secret that is fetched when it is needed, because it may change. */
interface LookupSecret {
  kind: 'LookupSecret';
  description?: string | null;
  url: string;
  headers?: Record<string, string>;
}

export type SecretSource = StaticSecret | LookupSecret;

/** A tool server as `mcpServers` has it. */
export interface McpServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
  /** `sse`, or one of the names of streamable HTTP (`http`, `streamable-http`, `shttp`), which is the default. */
  transport?: string;
  headers?: Record<string, string>;
  /** Bearer token. */
  auth?: string;
  /** Slipway extension: names of the tools that are offered; `*` stands for all. */
  tools?: string[];
}

/** How to start an agent that speaks the Agent Client Protocol, with the member names of the reference. */
export interface AcpAgentSpec {
  acp_command?: string[];
  acp_args?: string[];
  /** Slipway extension: variables that are not secret. */
  acp_env?: Record<string, string>;
  /** Null: the agent's own choice. */
  acp_model?: string | null;
  acp_session_mode?: string | null;
  /** Slipway extension: the authentication method that the agent signs in with. */
  acp_auth_method?: string | null;
}

/** The agent of a conversation. Further members are kept and returned, but ignored. */
export interface AgentSpec extends AcpAgentSpec {
  kind: 'Agent' | 'ACPAgent';
  llm: {
    model: string;
    api_key?: string | null;
    base_url?: string | null;
    /** Seconds. */
    timeout?: number | null;
    /** USD. */
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

/** What our own agent server accepts beyond the published schema; others ignore it. */
interface SlipwayExtension {
  /** USD per conversation. */
  max_budget?: number | null;
  /** Language of the agent's replies. */
  language?: string | null;
  search_api_key?: string | null;
  tavily_api_url?: string | null;
  /** USD per million tokens, by model name. */
  model_prices?: Record<string, { input: number; output: number }>;
  /** Never written to disk: see `CredentialsRequest`. */
  git?: GitAccess | null;
  /** Servers that users may name for models and tool servers, as in OUTBOUND_ALLOWLIST; null: any. */
  outbound_allowlist?: string[] | null;
  /** JSON Schema of the `result` argument that the agent must pass to `finish`; null: no result is required. */
  result_schema?: Record<string, unknown> | null;
}

export interface SendMessageRequest {
  role?: 'user';
  content: Content[];
  /** Whether the agent starts to work on it. */
  run?: boolean;
}

/** Body of `POST /api/conversations`. */
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
  /** Keys of lower-case letters and digits. */
  tags?: Record<string, string> | null;
  slipway?: SlipwayExtension;
}

/**
 * Body of `POST /api/conversations/{id}/credentials` (not in the published API): restores the secrets that a
 * conversation loses when its server ends, because none is ever written to disk, and updates settings. Only the members
 * that are given are replaced.
 */
export interface CredentialsRequest {
  /**
   * The model, with its address and its key. After a restart, our agent server calls no model until a client names the
   * model and its address again, because tools may have changed the record on its disk.
   */
  llm_model?: string;
  /** Null: the provider's own. */
  llm_base_url?: string | null;
  llm_api_key?: string | null;
  /** The user has a key, but for a different server than the conversation's, which still needs a key of its own. */
  llm_key_withheld?: boolean;
  /** How the model is called: members of `llm` in a start. They are kept while the model and its address stay. */
  llm_parameters?: Record<string, unknown> | null;
  search_api_key?: string | null;
  /** Where the search key is sent. */
  tavily_api_url?: string | null;
  mcp_config?: { mcpServers?: Record<string, McpServerEntry> };
  secrets?: Record<string, SecretSource | string>;
  git?: GitAccess | null;
  /** This member and those below it are stored, and take effect from the next step. */
  max_iterations?: number;
  /** USD per conversation; null: no limit. */
  max_budget?: number | null;
  /** USD per million tokens, by model. Replaces the known prices, because a different model comes with its own. */
  model_prices?: Record<string, { input: number; output: number }>;
  language?: string | null;
  outbound_allowlist?: string[] | null;
  /** How to start the conversation's agent if it is not our own. The record on the disk does not decide this. */
  acp?: AcpAgentSpec | null;
}
