import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import type { Content } from '../../agent-protocol/events.js';
import { User } from '../../auth/user.entity.js';
import type { ProviderType } from '../../git-providers/git-provider.js';

/** The way of a start task, in this order; ERROR can follow each but READY. */
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

/** A conversation on its way: this row is the truth, the job that walks it only carries the id. */
@Entity('app_conversation_start_tasks')
@Index('app_conversation_start_tasks_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('app_conversation_start_tasks_unfinished_idx', ['userId'], {
  where: `status <> ALL (ARRAY['READY'::text, 'ERROR'::text])`,
})
@Index('app_conversation_start_tasks_app_conversation_id_key', ['appConversationId'], { unique: true })
export class StartTask {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'app_conversation_start_tasks_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'app_conversation_start_tasks_user_id_fkey' })
  user?: User;

  /** Changed by compare-and-set only. */
  @Column('text')
  status: StartTaskStatus;

  @Column('text', { nullable: true })
  detail: string | null;

  /** Chosen with the task; clients see it from READY on. */
  @Column('uuid', { name: 'app_conversation_id' })
  appConversationId: string;

  /** Chosen with the task as well, unless the request names one. */
  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  /** Whose queue its job is in. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  /** The request as it is echoed and worked on; secrets in it are masked. */
  @Column('jsonb')
  request: StartRequest;

  /** Encrypted JSON of the request's `secrets`; null when it had none. */
  @Column('text', { name: 'request_secrets', nullable: true })
  requestSecrets: string | null;

  /** What could not be done as asked, or was done for it to others, for people; `detail` ends with it. */
  @Column('text', { array: true, default: () => "'{}'" })
  notes: string[];

  /** Its sandbox has been made, or was there before; one without a row is gone then. */
  @Column('boolean', { name: 'sandbox_made', default: false })
  sandboxMade: boolean;

  /** Where the agent works inside the sandbox; null until that is known. */
  @Column('text', { name: 'working_dir', nullable: true })
  workingDir: string | null;

  /** Counts the workers that took it up: one that was given up for dead changes nothing any more. */
  @Column('integer', { default: 0 })
  attempt: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
