import type {
  ConversationFailure,
  ConversationStatus,
  MetricsSnapshot,
} from '@slipway/agent-protocol/conversation-api.js';
import type { Visibility } from '../../auth/access.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import type { SandboxRowStatus } from '../sandboxes/sandbox-status.js';
import type { ConversationPullRequest } from './conversation.entity.js';
import type { FollowRow } from './followed/followed-pull-request.entity.js';
import type { ShownState } from './shown-state.js';

/** A conversation as lists and answers show it, with its sandbox, its log and what it follows. */
export interface ConversationRow {
  id: string;
  user_id: string;
  visibility: Visibility;
  sandbox_id: string;
  selected_repository: string | null;
  selected_branch: string | null;
  git_provider: ProviderType | null;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  llm_model: string | null;
  agent: string | null;
  /** `acp` for adopted ACP conversations; else `agent` says it. */
  agent_kind: string | null;
  parent_conversation_id: string | null;
  public: boolean | null;
  tags: Record<string, string>;
  metadata: Record<string, unknown>;
  working_branch: string | null;
  pull_requests: ConversationPullRequest[];
  /** How its pull request is followed; null unless that was asked for. */
  follow: FollowRow | null;
  /** The agent's result; null unless one was requested. */
  result: unknown;
  working_dir: string;
  sandbox_generation: number;
  created_at: Date;
  updated_at: Date;
  /** Has microseconds, for cursors. */
  created_at_text: string;
  sandbox_status: SandboxRowStatus | null;
  /** While it is in ERROR. */
  sandbox_failure: { at: string; cause: string | null } | null;
  /** Encrypted, and only while the sandbox is RUNNING. */
  session_key: string | null;
  /** Address of the agent server while the sandbox is RUNNING. */
  address: string | null;
  expose_port: number | null;
  execution_status: ConversationStatus | null;
  /** Why the agent gave up; null unless it has. */
  error: ConversationFailure | null;
  metrics: MetricsSnapshot | null;
  sub_conversation_ids: string[];
}

/** Columns of any size, as `endAtBytes` measures them. */
export const LARGE = [
  'run.metadata::text',
  'run.tags::text',
  'run.pull_requests::text',
  'run.pr_number::text',
  'run.metrics::text',
  'run.result::text',
  'run.sub_conversation_ids::text',
];

export const OWNERS = ['me', 'others'] as const;

export interface ConversationFilter {
  /** Absent: the reader's own, and those that others share. */
  owner?: (typeof OWNERS)[number];
  /** Ignores case, and is never a pattern. */
  titleContains?: string;
  createdFrom?: Date;
  createdBefore?: Date;
  updatedFrom?: Date;
  updatedBefore?: Date;
  sandboxId?: string;
  tags?: Record<string, string>;
  state?: ShownState;
  repository?: string;
  provider?: ProviderType;
  automationId?: string;
  /** Whether conversations with a parent are found too. */
  withSubConversations: boolean;
}
