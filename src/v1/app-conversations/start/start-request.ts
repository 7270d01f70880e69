import type { Content } from '../../../agent-protocol/content.js';
import type { ProviderType } from '../../../git-providers/git-provider.types.js';

/** The first message of a conversation; the agent starts to work on it whatever `run` says. */
export interface StartMessage {
  role: 'user';
  content: Content[];
  run: boolean;
}

/**
 * What a conversation is asked to begin with, checked as far as that needs no database. Named as on the wire, each
 * member there (null where it was not given): the row of the start task keeps it, answers echo it, and the worker
 * reads it back. A suggested task has been turned into `initial_message`, `trigger`, repository and provider already,
 * and stays for the echo.
 */
export interface StartRequest {
  sandbox_id: string | null;
  /** Of the sandbox that is made when none is named; null: the default. */
  sandbox_spec_id: string | null;
  /** UUID with dashes; null: chosen by us. */
  conversation_id: string | null;
  initial_message: StartMessage | null;
  system_message_suffix: string | null;
  /** Null: the one of the settings. */
  llm_model: string | null;
  /** `owner/name` or a longer path; its form was checked. */
  selected_repository: string | null;
  selected_branch: string | null;
  git_provider: ProviderType | null;
  suggested_task: Record<string, unknown> | null;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  /** UUID with dashes. */
  parent_conversation_id: string | null;
  agent_type: 'default' | 'plan';
  public: boolean | null;
  /** Values by name: the row keeps them encrypted beside the echo, in which they are masked. */
  secrets: Record<string, string> | null;
  tags: Record<string, string>;
  /** Members that are echoed and have no effect (`processors`, `plugins`, `agent_profile_id`, …). */
  [echoed: string]: unknown;
}
