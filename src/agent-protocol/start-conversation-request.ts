import type { Content } from './content.js';
import type { ConfirmationPolicy, SecurityAnalyzer } from './conversation-policies.js';
import type { GitAccess } from './git-access.js';
import type { SecretSource } from './secret-source.js';

/** A tool server as `mcpServers` lists it. */
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
}

/** The agent of a conversation. Further members are kept and shown again, but mean nothing to us. */
export interface AgentSpec {
  kind: 'Agent';
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

/** What our own agent server understands beyond the published schema; others ignore it. */
export interface SlipwayExtension {
  /** USD per conversation. */
  max_budget?: number | null;
  /** Language of the answers. */
  language?: string | null;
  search_api_key?: string | null;
  tavily_api_url?: string | null;
  /** USD per million tokens, by model name. */
  model_prices?: Record<string, { input: number; output: number }>;
  /** Never written: see `CredentialsRequest`. */
  git?: GitAccess | null;
  /** Servers whose addresses users may give for models and tool servers, as in OUTBOUND_ALLOWLIST; null: any. */
  outbound_allowlist?: string[] | null;
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
  /** UUID; a known one answers the conversation that exists. */
  conversation_id?: string | null;
  confirmation_policy?: ConfirmationPolicy;
  security_analyzer?: SecurityAnalyzer | null;
  initial_message?: SendMessageRequest | null;
  max_iterations?: number;
  stuck_detection?: boolean;
  secrets?: Record<string, SecretSource | string>;
  slipway?: SlipwayExtension;
}

/**
 * Body of `POST /api/conversations/{id}/credentials` (ours alone): what a conversation lost when its server ended,
 * since no secret is ever written, and what may be another one by now. Only what is given is replaced.
 */
export interface CredentialsRequest {
  llm_api_key?: string | null;
  /** There is a key, but for another server than the conversation's: it goes on needing its own. */
  llm_key_withheld?: boolean;
  search_api_key?: string | null;
  mcp_config?: { mcpServers?: Record<string, McpServerEntry> };
  secrets?: Record<string, SecretSource | string>;
  git?: GitAccess | null;
  /** These are kept, and used from the next step on. */
  max_iterations?: number;
  /** USD per conversation; null: no limit. */
  max_budget?: number | null;
  language?: string | null;
  outbound_allowlist?: string[] | null;
}
