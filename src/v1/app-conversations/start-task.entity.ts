import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { Content } from '@slipway/agent-protocol/events.js';
import { GIT_MODES, type GitMode } from '@slipway/agent-protocol/git.js';
import type { CloneFilter } from '@slipway/common/clone-part.js';
import type { Visibility } from '../../auth/access.js';
import { OwnedRow } from '../../auth/user.repository.js';
import type { EncryptedColumn } from '@slipway/common/secret-cipher.js';
import { isReadableWithin, parseReadable } from '@slipway/egress-rules/readable-repositories.js';
import { toHexId } from '@slipway/common/identifiers.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import type { ConversationReport, WebhookEvent } from '../../outbound-webhooks/webhook-event.js';
import type { SecretFilter } from '../../settings/secrets/agent-secrets.reader.js';
import type { FollowWishes } from './followed/followed-pull-request.entity.js';
import { type ForkPolicy, headBranch, type WorkPlace } from './work-places/work-place.js';
import { taskTitle } from './conversation.entity.js';

/** Statuses in their order; ERROR can follow each but READY. */
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

export const FINISHED_STATUSES = ['READY', 'ERROR'] as const satisfies readonly StartTaskStatus[];

export function isFinished(status: StartTaskStatus): status is (typeof FINISHED_STATUSES)[number] {
  return (FINISHED_STATUSES as readonly StartTaskStatus[]).includes(status);
}

/** The agent begins to work on it whatever `run` says. */
export interface StartMessage {
  role: 'user';
  content: Content[];
  run: boolean;
}

/**
 * A start request as checked without the database. Members are named as on the wire and present (null: not given),
 * because rows store and responses echo them. A suggested task has already become `initial_message`, `trigger`,
 * repository and provider.
 */
export interface StartRequest {
  sandbox_id: string | null;
  /** The specification of a new sandbox; null means the default. */
  sandbox_spec_id: string | null;
  /** Null: the service chooses. */
  conversation_id: string | null;
  initial_message: StartMessage | null;
  system_message_suffix: string | null;
  /** Null: from the settings. */
  llm_model: string | null;
  /** The profile that gives model and key; null, or absent in older rows, means the settings. */
  llm_profile?: string | null;
  /** The agent's name; null, or absent in older rows, means the settings' agent. */
  agent?: string | null;
  /** `owner/name` or a longer path. */
  selected_repository: string | null;
  selected_branch: string | null;
  /** Absent in older rows, as the following one. */
  clone_submodules?: boolean;
  fetch_lfs?: boolean;
  git_provider: ProviderType | null;
  suggested_task: Record<string, unknown> | null;
  /** Page of the suggested task on its host; absent where there is none. */
  task_url?: string;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  parent_conversation_id: string | null;
  agent_type: 'default' | 'plan';
  public: boolean | null;
  /** Absent in older rows: private. */
  visibility?: Visibility;
  /** Secrets by name. They are masked in the row, which stores them encrypted in another column. */
  secrets: Record<string, string> | null;
  tags: Record<string, string>;
  /** Absent in older rows, as the following two. */
  metadata?: Record<string, unknown>;
  result_schema?: Record<string, unknown> | null;
  /** Stored secrets that the conversation gets; null: all. */
  secret_names?: string[] | null;
  /** Absent: `write`. */
  git?: GitMode;
  /** Absent: as the settings say, as the following two. */
  fork?: ForkPolicy;
  clone_depth?: number | null;
  clone_filter?: CloneFilter | null;
  /** As it was written; absent in older rows, as null. */
  egress?: Record<string, unknown> | null;
  /** Other repositories that its sandbox may read; null, or absent in older rows: as the settings say. */
  repositories_read?: string[] | null;
  /** Found by the start; null, or absent in older rows: the repository alone. */
  work_place?: WorkPlace | null;
  /** Absent in older rows, as null. */
  follow?: FollowWishes | null;
  /** The agent of the parent asks for it, through the tool server. */
  started_by_agent?: true;
  /** Number of the pull request that an automation's event is about. */
  change_request?: number;
  /** A key for some repositories has started it: its git token is for its own repository alone. */
  own_repository?: boolean;
  /** USD, beside the limit of the settings. */
  max_budget?: number | null;
  /** What entries in the audit name of the automation's run that it is for, who caused it included. */
  cause?: Record<string, string>;
  /** How many messages of agents the conversation has taken. */
  agent_messages?: number;
  /** Members without an effect that are echoed (`processors`, `plugins`, `agent_profile_id`, …). */
  [echoed: string]: unknown;
}

/** What a conversation may at most: said at its start, and true of all that it starts. Older rows lack members. */
export type ConversationLimits = Partial<
  Pick<
    StartRequest,
    'secret_names' | 'git' | 'agent_type' | 'cause' | 'work_place' | 'own_repository' | 'repositories_read'
  >
>;

function readableWithin({ repositories_read: asked }: StartRequest, given: readonly string[]): string[] {
  const outer = given.flatMap((text) => parseReadable(text) ?? []);
  return (asked ?? given).filter((text) => {
    const pattern = parseReadable(text);
    return pattern !== null && isReadableWithin(pattern, outer);
  });
}

/** A child's request, with at most what its parent may. */
export function withinLimits(request: StartRequest, parent: ConversationLimits): StartRequest {
  const { secret_names: names = null } = parent;
  const asked = request.secret_names ?? names;
  const least = Math.min(...[request, parent].map((limits) => GIT_MODES.indexOf(gitMode(limits))));
  return {
    ...request,
    secret_names: names === null ? asked : (asked ?? []).filter((name) => names.includes(name)),
    git: GIT_MODES[least] ?? 'none',
    agent_type: parent.agent_type === 'plan' ? 'plan' : request.agent_type,
    ...(parent.cause && { cause: parent.cause }),
    ...(parent.own_repository && { own_repository: true }),
    ...(parent.repositories_read && { repositories_read: readableWithin(request, parent.repositories_read) }),
  };
}

export function gitMode({ git = 'write' }: ConversationLimits): GitMode {
  return git;
}

/** Whether its agent may use the git tokens of its user as it likes, where the operator does not keep them. */
export function hasTokens(limits: ConversationLimits): boolean {
  return (limits.secret_names ?? null) === null && hasTokensOfGit(limits);
}

function hasTokensOfGit(limits: ConversationLimits): boolean {
  return gitMode(limits) === 'write' && limits.own_repository !== true;
}

/** What any of the conversations may see of its user's secrets. */
export function visibleSecrets(all: readonly ConversationLimits[]): SecretFilter {
  return (name, isGitToken) =>
    all.some(
      (limits) => (limits.secret_names?.includes(name) ?? true) && (!isGitToken || hasTokensOfGit(limits)),
    );
}

const BRANCH_SUFFIX_LENGTH = 8;

/** Derived from the conversation's id, so that a repeated step makes the same branch. */
export function newBranchOf(conversationId: string): string {
  return `openhands-workspace-${toHexId(conversationId).slice(0, BRANCH_SUFFIX_LENGTH)}`;
}

/** Whether no branch of its own is made for the work. */
export function startsInHead({ head, push }: WorkPlace): boolean {
  return head !== null && (push === 'head' || (push === 'none' && (head.repository ?? head.ref) !== null));
}

/** A repository as a start names it, with the provider that is meant where it names none. */
export interface WorkedRepository {
  repository: string;
  provider: ProviderType;
}

/** Returns the branch of the work; null when there is no repository, or when the parent has prepared it. */
export function workingBranch({
  appConversationId,
  request: {
    selected_repository: repository,
    selected_branch: branch,
    parent_conversation_id: parent,
    work_place: place,
  },
}: Pick<StartTask, 'appConversationId' | 'request'>): string | null {
  if (repository === null) {
    return null;
  }
  if (place?.head && startsInHead(place)) {
    return headBranch(place.head);
  }
  return branch ?? (parent === null ? newBranchOf(appConversationId) : null);
}

@Entity('app_conversation_start_tasks')
@Index('app_conversation_start_tasks_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('app_conversation_start_tasks_user_id_updated_at_idx', ['userId', 'updatedAt', 'id'])
// TypeORM cannot write it; a migration has made it.
@Index('app_conversation_start_tasks_updated_at_idx', { synchronize: false })
@Index('app_conversation_start_tasks_unfinished_idx', ['userId'], {
  where: `status <> ALL (ARRAY['READY'::text, 'ERROR'::text])`,
})
@Index('app_conversation_start_tasks_due_idx', ['hostId', 'dueAt'], {
  where: `status <> ALL (ARRAY['READY'::text, 'ERROR'::text])`,
})
@Index('app_conversation_start_tasks_kept_idx', ['userId', 'updatedAt', 'id'], { where: 'NOT trimmed' })
@Index('app_conversation_start_tasks_sandbox_id_idx', ['sandboxId'])
@Index('app_conversation_start_tasks_app_conversation_id_key', ['appConversationId'], { unique: true })
export class StartTask extends OwnedRow {
  @PrimaryColumn('uuid') id: string;

  /** Changes by compare-and-set only. */
  @Column('text') status: StartTaskStatus;
  @Column('text', { nullable: true }) detail: string | null;

  /** Chosen with the task; clients see it once the task is READY. */
  @Column('uuid') appConversationId: string;
  @Column('text') sandboxId: string;
  @Column('text') hostId: string;

  /** Its secrets are masked. */
  @Column('jsonb') request: StartRequest;

  /** Encrypted JSON. */
  @Column('text', { nullable: true }) requestSecrets: string | null;

  /** Deviations from the request, and sandboxes that were paused for it. Responses append them to `detail`. */
  @Column('text', { array: true, default: () => "'{}'" }) notes: string[];

  /** The sandbox exists or existed: without a row it is gone. */
  @Column('boolean', { default: false }) sandboxMade: boolean;

  /** Inside the sandbox. */
  @Column('text', { nullable: true }) workingDir: string | null;

  /** Hidden because of many newer starts. The secrets and their names stay, because the conversation needs them. */
  @Column('boolean', { default: false }) trimmed: boolean;

  /** Counts takeovers: an earlier worker must not change the task any more. */
  @Column('integer', { default: 0 }) attempt: number;

  /**
   * When a worker may take it. The default leaves time for the previous release, which runs the tasks that it makes as jobs.
   * Meaningless once the task has finished.
   */
  @Column('timestamptz', { nullable: true, default: () => "(now() + '00:00:15')" })
  dueAt: Date | null;
  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;
  @Column('integer', { default: 0 }) attempts: number;

  /** Trace context of the span that made it. */
  @Column('text', { nullable: true }) traceparent: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** Members that are the same in each new task. */
export const NEW_TASK = {
  detail: null,
  attempt: 0,
  trimmed: false,
  dueAt: null,
  leasedBy: null,
  leasedUntil: null,
  attempts: 0,
  traceparent: null,
} satisfies Partial<StartTask>;

/** Columns that hold encrypted records. */
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

/** Makes the event for the user's webhook endpoints. */
export function startEvent({
  id,
  status,
  appConversationId,
  sandboxId,
  detail,
  request,
}: StartTask): WebhookEvent {
  const hasFailed = status !== 'READY';
  const report: ConversationReport = {
    conversation_id: toHexId(appConversationId),
    sandbox_id: sandboxId,
    result: null,
    error: hasFailed ? { code: 'start_failed', detail: detail ?? '' } : null,
    tags: request.tags,
    cost: null,
    repository: request.selected_repository,
    pull_request: null,
  };
  const data = { start_task_id: toHexId(id), ...report };
  return hasFailed
    ? {
        type: 'conversation.start_failed',
        data: { ...data, detail },
        title: request.title ?? taskTitle(request.suggested_task),
      }
    : { type: 'conversation.ready', data };
}
