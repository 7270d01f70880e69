import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { Content } from '@slipway/agent-protocol/events.js';
import { OwnedByUser, User } from '../../auth/user.repository.js';
import type { EncryptedColumn } from '../../common/crypto/secret-cipher.js';
import { toHexId } from '../../common/identifiers.js';
import type { ProviderType } from '../../git-providers/git-provider.js';

/** The statuses of a start in their order; ERROR can follow each but READY. */
export const START_TASK_STATUSES = [
  'WORKING',
  'WAITING_FOR_SANDBOX',
  'PREPARING_REPOSITORY',
  'RUNNING_SETUP_SCRIPT',
  'SETTING_UP_GIT_HOOKS',
  'STARTING_CONVERSATION',
  'READY',
  'ERROR',
] as const;
export type StartTaskStatus = (typeof START_TASK_STATUSES)[number];

/** A start in one of these is over. */
export const FINISHED_STATUSES = ['READY', 'ERROR'] as const satisfies readonly StartTaskStatus[];

export function isFinished(status: StartTaskStatus): status is (typeof FINISHED_STATUSES)[number] {
  return (FINISHED_STATUSES as readonly StartTaskStatus[]).includes(status);
}

/** The first message of a conversation; the agent begins to work on it whatever `run` says. */
export interface StartMessage {
  role: 'user';
  content: Content[];
  run: boolean;
}

/**
 * What a client asks a conversation to begin with, checked as far as that needs no database. Members are named as on the
 * wire and always present (null where they were not given): the row of the start task stores them, responses echo them,
 * and the worker reads them back. A suggested task has already become `initial_message`, `trigger`, repository and
 * provider; it stays for the echo.
 */
export interface StartRequest {
  sandbox_id: string | null;
  /** Of the sandbox that is created when none is named; null: the default. */
  sandbox_spec_id: string | null;
  /** UUID with dashes; null: the service chooses. */
  conversation_id: string | null;
  initial_message: StartMessage | null;
  system_message_suffix: string | null;
  /** Null: the settings' model. */
  llm_model: string | null;
  /** The stored profile that the model comes from; null, or absent in older rows: the settings. */
  llm_profile?: string | null;
  /** Null: the settings' agent. Absent in rows of earlier versions. */
  agent?: string | null;
  /** `owner/name` or a longer path, well-formed. */
  selected_repository: string | null;
  selected_branch: string | null;
  /** Absent in rows of earlier versions, as the following one. */
  clone_submodules?: boolean;
  fetch_lfs?: boolean;
  git_provider: ProviderType | null;
  suggested_task: Record<string, unknown> | null;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  /** UUID with dashes. */
  parent_conversation_id: string | null;
  agent_type: 'default' | 'plan';
  public: boolean | null;
  /** Values by name. The row stores them encrypted beside the request, in which they are masked. */
  secrets: Record<string, string> | null;
  tags: Record<string, string>;
  /** Free; absent in requests of earlier versions, as the following two. */
  metadata?: Record<string, unknown>;
  /** JSON Schema of the result; null: none is asked for. */
  result_schema?: Record<string, unknown> | null;
  /** Names of the stored secrets that the conversation gets; null: all. */
  secret_names?: string[] | null;
  /** Members that are echoed without an effect (`processors`, `plugins`, `agent_profile_id`, …). */
  [echoed: string]: unknown;
}

const BRANCH_SUFFIX_LENGTH = 8;

/** Derived from the conversation's id, so that a repeated step makes the same branch. */
export function newBranchOf(conversationId: string): string {
  return `openhands-workspace-${toHexId(conversationId).slice(0, BRANCH_SUFFIX_LENGTH)}`;
}

/** The branch that a new conversation works on; null without a repository, and where its parent has prepared that. */
export function workingBranch({
  appConversationId,
  request: { selected_repository: repository, selected_branch: branch, parent_conversation_id: parent },
}: Pick<StartTask, 'appConversationId' | 'request'>): string | null {
  if (repository === null) {
    return null;
  }
  return branch ?? (parent === null ? newBranchOf(appConversationId) : null);
}

/** The start of a conversation: this row is the truth, its job only carries the id. */
@Entity('app_conversation_start_tasks')
@Index('app_conversation_start_tasks_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('app_conversation_start_tasks_user_id_updated_at_idx', ['userId', 'updatedAt', 'id'])
// Of a kind that TypeORM cannot write; a migration has made it.
@Index('app_conversation_start_tasks_updated_at_idx', { synchronize: false })
@Index('app_conversation_start_tasks_unfinished_idx', ['userId'], {
  where: `status <> ALL (ARRAY['READY'::text, 'ERROR'::text])`,
})
@Index('app_conversation_start_tasks_kept_idx', ['userId', 'updatedAt', 'id'], { where: 'NOT trimmed' })
@Index('app_conversation_start_tasks_sandbox_id_idx', ['sandboxId'])
@Index('app_conversation_start_tasks_app_conversation_id_key', ['appConversationId'], { unique: true })
export class StartTask {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
  user?: User;

  /** Changed by compare-and-set only. */
  @Column('text')
  status: StartTaskStatus;

  @Column('text', { nullable: true })
  detail: string | null;

  /** Chosen with the task; clients see it once the task is READY. */
  @Column('uuid', { name: 'app_conversation_id' })
  appConversationId: string;

  /** Also chosen with the task, unless the request names one. */
  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  /** The host whose queue has its job. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  /** Secrets in it are masked. */
  @Column('jsonb')
  request: StartRequest;

  /** Encrypted JSON of the request's `secrets`; null when it had none. */
  @Column('text', { name: 'request_secrets', nullable: true })
  requestSecrets: string | null;

  /**
   * Notes for the user: what could not be done as requested, or which other sandboxes were paused for it. Responses
   * append it to `detail`.
   */
  @Column('text', { array: true, default: () => "'{}'" })
  notes: string[];

  /** Its sandbox was created, or existed before: if it has no row, it is gone. */
  @Column('boolean', { name: 'sandbox_made', default: false })
  sandboxMade: boolean;

  /** Folder in the sandbox that the agent works in; null until it is known. */
  @Column('text', { name: 'working_dir', nullable: true })
  workingDir: string | null;

  /**
   * Its user has started so much since that it is not shown any more. What its conversation still needs stays: the secrets
   * it was started with, and the names of those that it may see.
   */
  @Column('boolean', { default: false })
  trimmed: boolean;

  /** Counts the workers that took it up: an earlier one, taken for dead, changes nothing any more. */
  @Column('integer', { default: 0 })
  attempt: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}

/** Columns of start tasks that hold encrypted records. */
export const START_TASK_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'app_conversation_start_tasks',
    column: 'request_secrets',
    keyColumns: ['id'],
    binding: ({ id = '' }) => requestSecretsBinding(id),
  },
];

export function requestSecretsBinding(taskId: string): string {
  return `app_conversation_start_tasks.request_secrets:${taskId}`;
}
