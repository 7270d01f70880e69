import type { ConversationStatus, MetricsSnapshot } from '../../agent-protocol/conversation-info.js';
import type { ProviderType } from '../../git-providers/git-provider.types.js';
import type { SandboxRowStatus } from '../sandboxes/sandbox-status.js';

/** A conversation with what is known of its sandbox and of its other half in the agent server. */
export interface ConversationRow {
  id: string;
  user_id: string;
  sandbox_id: string;
  selected_repository: string | null;
  selected_branch: string | null;
  git_provider: ProviderType | null;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  llm_model: string | null;
  parent_conversation_id: string | null;
  public: boolean | null;
  tags: Record<string, string>;
  working_dir: string;
  sandbox_generation: number;
  created_at: Date;
  updated_at: Date;
  /** `created_at` with microseconds, for cursors. */
  created_at_text: string;
  /** Null when there is no row of the sandbox. */
  sandbox_status: SandboxRowStatus | null;
  /** Encrypted, and only while the sandbox is RUNNING. */
  session_key: string | null;
  /** Of the sandbox; null unless it is RUNNING. */
  address: string | null;
  execution_status: ConversationStatus | null;
  metrics: MetricsSnapshot | null;
  sub_conversation_ids: string[];
}

/** Columns of a `ConversationRow` but for `sub_conversation_ids`. */
export const CONVERSATION_COLUMNS = `
  c.id, c.user_id, c.sandbox_id, c.selected_repository, c.selected_branch, c.git_provider, c.title, c.trigger,
  c.pr_number, c.llm_model, c.parent_conversation_id, c.public, c.tags, c.working_dir, c.sandbox_generation,
  c.created_at, c.updated_at,
  to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_text,
  s.status AS sandbox_status,
  CASE WHEN s.status = 'RUNNING' THEN s.session_key END AS session_key,
  CASE WHEN s.status = 'RUNNING' THEN s.address END AS address,
  f.execution_status, f.metrics`;

/** A sandbox counts only where it is the same user's. */
export const CONVERSATION_TABLES = `
  app_conversations c
  LEFT JOIN sandboxes s ON s.id = c.sandbox_id AND s.user_id = c.user_id
  LEFT JOIN followed_conversations f ON f.id = c.id`;
