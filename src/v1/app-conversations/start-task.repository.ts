import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, In, Not, Repository } from 'typeorm';
import { MASK } from '@slipway/common/secret-mask.js';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { currentTraceparent } from '@slipway/common/spans.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { lockFree } from '@slipway/database/leased-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import { hostIsLost } from '../sandboxes/sandbox-host.repository.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { AppConversation } from './conversation.entity.js';
import { isStored } from './conversation.queries.js';
import {
  type ConversationLimits,
  FINISHED_STATUSES,
  isFinished,
  NEW_TASK,
  requestSecretsBinding,
  startEvent,
  type StartRequest,
  StartTask,
  type StartTaskStatus,
  withinLimits,
  type WorkedRepository,
} from './start-task.entity.js';

/** Payload: the task's id. */
export const START_TASKS_CHANNEL = 'start_tasks';

/** The task is gone, or another worker took it over: the current one stops, and changes nothing any more. */
export class StartSuperseded extends Error {
  constructor() {
    super('the start was taken over by another worker, or deleted');
    this.name = 'StartSuperseded';
  }
}

/** Payload: the host whose workers have something to do. */
export const DUE_STARTS_CHANNEL = 'due_starts';

/** A task whose request has its secrets in clear. */
export type NewStartTask = Omit<
  StartTask,
  'user' | keyof typeof NEW_TASK | 'requestSecrets' | 'createdAt' | 'updatedAt'
>;

/** What of a conversation's start bears on what its agent gets. */
export interface ConversationGrants {
  /** The start task's id; null for a conversation that a client began in a sandbox. */
  startId: string | null;
  /** The start's own secrets, in clear; they precede the user's. */
  own: ReadonlyMap<string, string>;
  limits: ConversationLimits;
  /** USD; null: no other limit than that of the settings. */
  maxBudget: number | null;
}

type RemovedStart = { sandbox_id: string; request: StartRequest };

type StartTaskChange = Partial<Pick<StartTask, 'detail' | 'notes' | 'sandboxMade' | 'workingDir'>>;

/** Wakes the workers of the host. */
const INSERT = new NamedStatement<{ created_at: Date; updated_at: Date }>(
  'start_task_insert',
  `WITH inserted AS (
    INSERT INTO app_conversation_start_tasks
      (id, user_id, status, app_conversation_id, sandbox_id, host_id, request, request_secrets, notes, sandbox_made,
       working_dir, due_at, traceparent)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (app_conversation_id) DO NOTHING
    RETURNING created_at, updated_at, host_id)
  SELECT created_at, updated_at, pg_notify('${DUE_STARTS_CHANNEL}', host_id) AS notified FROM inserted`,
);

/** Change and notification in one round trip. Null keeps a column; for `detail`, `$5` says whether it changes. */
const WRITE = `
  WITH written AS (
    UPDATE app_conversation_start_tasks
    SET status = COALESCE($4, status), detail = CASE WHEN $5 THEN $6 ELSE detail END, notes = COALESCE($7, notes),
      sandbox_made = COALESCE($8, sandbox_made), working_dir = COALESCE($9, working_dir), updated_at = now()
    WHERE id = $1 AND status = $2 AND attempt = $3
    RETURNING id
  )
  SELECT pg_notify('${START_TASKS_CHANNEL}', id::text) AS notified FROM written`;

const TAKE_UP = `
  UPDATE app_conversation_start_tasks SET attempt = attempt + 1, updated_at = now()
  WHERE id = $1 AND status <> ALL ($2)
  RETURNING `;

const REMOVE = `
  DELETE FROM app_conversation_start_tasks WHERE app_conversation_id = $1 AND user_id = $2 RETURNING sandbox_id, request`;

const LIMITS = `
  SELECT DISTINCT NULLIF(request -> 'secret_names', 'null') AS secret_names, coalesce(request ->> 'git', 'write') AS git,
    coalesce((request ->> 'own_repository')::boolean, false) AS own_repository, NULLIF(request -> 'repositories_read', 'null') AS repositories_read
  FROM app_conversation_start_tasks WHERE sandbox_id = $1 AND user_id = $2`;

const REPOSITORIES = `
  SELECT DISTINCT request ->> 'selected_repository' AS repository, coalesce(request ->> 'git_provider', 'github') AS provider
  FROM app_conversation_start_tasks WHERE sandbox_id = $1 AND request ->> 'selected_repository' IS NOT NULL`;

const MAX_BATCH = 50;
const MAX_ENDED = 100;
/** Earlier versions kept all tasks, so one trim is limited. */
const TRIM_BATCH = 500;

/** Concurrent ends of a user's starts trim one after the other, so that each sees the earlier ends. */
const LOCK_TRIMMING = `SELECT pg_advisory_xact_lock(hashtext('${START_TASKS_CHANNEL}'), hashtext($1))`;

/** Drops large members without a use after the start. The others stay, as earlier versions expect them. */
const WITHOUT_TEXTS = `'${JSON.stringify({
  initial_message: null,
  system_message_suffix: null,
  processors: null,
  suggested_task: null,
  observability_metadata: null,
  observability_tags: null,
  observability_span_name: null,
  plugins: null,
  secrets: null,
  metadata: {},
  result_schema: null,
})}'::jsonb`;

const AMEND = 'UPDATE app_conversation_start_tasks SET request = request || $2::jsonb WHERE id = $1';

const COUNT_AGENT_MESSAGE = `
  UPDATE app_conversation_start_tasks
  SET request = request || jsonb_build_object('agent_messages', coalesce((request ->> 'agent_messages')::int, 0) + 1)
  WHERE app_conversation_id = $1 AND coalesce((request ->> 'agent_messages')::int, 0) < $2`;

/** Skips locked rows. A conversation's task is only reduced to what it needs (see `deleteOfConversation`). */
const TRIM = `
  WITH surplus AS (
    SELECT id FROM app_conversation_start_tasks
    WHERE user_id = $1 AND NOT trimmed AND status IN ('READY', 'ERROR')
    ORDER BY updated_at DESC, id DESC OFFSET ${MAX_ENDED} LIMIT ${TRIM_BATCH}
  ), locked AS (
    SELECT t.id, ${isStored('t.app_conversation_id')} AS is_needed
    FROM app_conversation_start_tasks t JOIN surplus USING (id) ${lockFree('t')}
  ), reduced AS (
    UPDATE app_conversation_start_tasks t
    SET trimmed = true, detail = NULL, notes = '{}', request = t.request || ${WITHOUT_TEXTS}
    FROM locked WHERE t.id = locked.id AND locked.is_needed
  )
  DELETE FROM app_conversation_start_tasks t USING locked WHERE t.id = locked.id AND NOT locked.is_needed`;

/** Only the last worker that took a task up may change it, from the status it knows; others get `StartSuperseded`. */
@Injectable()
export class StartTaskRepository {
  private readonly rows: EntityRows<StartTask>;

  constructor(
    @InjectRepository(StartTask) private readonly tasks: Repository<StartTask>,
    private readonly cipher: SecretCipher,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly clock: Clock,
  ) {
    this.rows = new EntityRows(tasks, 'app_conversation_start_tasks');
  }

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.tasks.manager.transaction(work);
  }

  /** Encrypts the secrets. Null when another start has just chosen the same id. */
  async insert(manager: EntityManager, given: NewStartTask): Promise<StartTask | null> {
    const { secrets } = given.request;
    const hasSecrets = secrets !== null && Object.keys(secrets).length > 0;
    const task = {
      ...given,
      request: hasSecrets ? withMaskedSecrets(given.request) : given.request,
      requestSecrets: hasSecrets
        ? this.cipher.encrypt(JSON.stringify(secrets), requestSecretsBinding(given.id))
        : null,
    };
    const [row] = await INSERT.within(manager, [
      task.id,
      task.userId,
      task.status,
      task.appConversationId,
      task.sandboxId,
      task.hostId,
      JSON.stringify(task.request),
      task.requestSecrets,
      task.notes,
      task.sandboxMade,
      task.workingDir,
      new Date(this.clock.now()),
      currentTraceparent(),
    ]);
    const times = row && { createdAt: row.created_at, updatedAt: row.updated_at };
    return times ? { ...task, ...NEW_TASK, ...times } : null;
  }

  async find(manager: EntityManager, id: string): Promise<StartTask | null> {
    return manager.findOneBy(StartTask, { id, trimmed: false });
  }

  /** Takes a task over from any earlier worker; null when it is finished or gone. */
  async takeUp(id: string): Promise<StartTask | null> {
    const [[row]] = await this.tasks.query<[Record<string, unknown>[], number]>(TAKE_UP + this.rows.columns, [
      id,
      [...FINISHED_STATUSES],
    ]);
    return row ? this.rows.entity(row) : null;
  }

  /** Moves a task to the next status, and clears `detail` unless one is given. Throws StartSuperseded. */
  async advance(
    task: StartTask,
    status: StartTaskStatus,
    change: StartTaskChange = {},
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    return this.lock(task, { detail: null, ...change, status }, manager);
  }

  /** Writes nothing when nothing changes. Throws StartSuperseded. */
  async update(
    task: StartTask,
    change: StartTaskChange,
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    const isSame = Object.entries(change).every(
      ([member, value]) => JSON.stringify(task[member as keyof StartTaskChange]) === JSON.stringify(value),
    );
    return isSame ? task : this.lock(task, change, manager);
  }

  /** Like `update`, but locks the row until the transaction ends even when nothing changes. Throws StartSuperseded. */
  async lock(
    task: StartTask,
    change: StartTaskChange & { status?: StartTaskStatus },
    manager: EntityManager,
  ): Promise<StartTask> {
    const values = [
      task.id,
      task.status,
      task.attempt,
      change.status ?? null,
      change.detail !== undefined,
      change.detail ?? null,
      change.notes ?? null,
      change.sandboxMade ?? null,
      change.workingDir ?? null,
    ];
    const rows = await manager.query<unknown[]>(WRITE, values);
    if (rows.length !== 1) {
      throw new StartSuperseded();
    }
    const written: StartTask = Object.assign({}, task, change);
    if (change.status !== undefined && isFinished(change.status)) {
      await this.end(manager, written);
    }
    return written;
  }

  /** Runs in the transaction that ends the start. */
  private async end(manager: EntityManager, task: StartTask): Promise<void> {
    await this.webhooks.publish(manager, task.userId, startEvent(task));
    if (!(await this.needsSandbox(manager, task.sandboxId))) {
      await this.sandboxes.endKeepAlive(manager, task.sandboxId);
    }
    await manager.query(LOCK_TRIMMING, [task.userId]);
    await manager.query(TRIM, [task.userId]);
  }

  /** The request's secrets by name. Throws SecretDecryptionError. */
  secretsOf({ id, requestSecrets: stored }: Pick<StartTask, 'id' | 'requestSecrets'>): Map<string, string> {
    if (stored === null) {
      return new Map();
    }
    const known: Record<string, string> = JSON.parse(this.cipher.decrypt(stored, requestSecretsBinding(id)));
    return new Map(Object.entries(known));
  }

  async ofConversation(
    userId: string,
    conversationId: string,
    manager = this.tasks.manager,
  ): Promise<StartTask | null> {
    return manager.findOneBy(StartTask, { appConversationId: conversationId, userId });
  }

  /** Sets members that are known only later. */
  async amend(id: string, members: Partial<StartRequest>, manager = this.tasks.manager): Promise<void> {
    await manager.query(AMEND, [id, JSON.stringify(members)]);
  }

  /**
   * The start itself, the request's secrets, what the conversation may, and its own budget (null: none).
   * Throws SecretDecryptionError.
   */
  async grantsOfConversation(userId: string, conversationId: string): Promise<ConversationGrants> {
    const task = await this.ofConversation(userId, conversationId);
    return {
      startId: task?.id ?? null,
      own: task ? this.secretsOf(task) : new Map(),
      limits: task?.request ?? {},
      maxBudget: task?.request.max_budget ?? null,
    };
  }

  /** What conversations that were started in the sandbox may, or, if all were deleted, what all of them could. */
  async limitsInSandbox(userId: string, sandboxId: string): Promise<ConversationLimits[]> {
    const present = await this.tasks.query<ConversationLimits[]>(LIMITS, [sandboxId, userId]);
    return present.length > 0 ? present : [(await this.sandboxes.read(sandboxId))?.limits ?? {}];
  }

  async repositoriesInSandbox(sandboxId: string): Promise<WorkedRepository[]> {
    return await this.tasks.query(REPOSITORIES, [sandboxId]);
  }

  /** Also one that is hidden. */
  async byId(id: string): Promise<StartTask | null> {
    return this.tasks.findOneBy({ id });
  }

  /** Counts a message of an agent to the conversation; false beyond the limit. */
  async countAgentMessage(manager: EntityManager, conversationId: string, most: number): Promise<boolean> {
    const [, affected] = await manager.query<[unknown, number]>(COUNT_AGENT_MESSAGE, [conversationId, most]);
    return affected === 1;
  }

  /** Unfinished tasks of lost hosts, unchanged for as many seconds of the database's clock; the oldest first. */
  async abandoned(hostId: string, seconds: number): Promise<StartTask[]> {
    return this.tasks
      .createQueryBuilder('task')
      .where({ hostId: Not(hostId), status: Not(In([...FINISHED_STATUSES])) })
      .andWhere('task.updated_at < now() - make_interval(secs => :seconds)', { seconds })
      .andWhere(hostIsLost('task.host_id'))
      .orderBy('task.updated_at')
      .take(MAX_BATCH)
      .getMany();
  }

  async countUnfinished(manager: EntityManager, userId: string): Promise<number> {
    return manager.countBy(StartTask, { userId, status: Not(In([...FINISHED_STATUSES])) });
  }

  /** Whether a start, finished or not, has chosen the id. */
  async hasConversation(manager: EntityManager, conversationId: string): Promise<boolean> {
    return manager.existsBy(StartTask, { appConversationId: conversationId });
  }

  async needsSandbox(manager: EntityManager, sandboxId: string): Promise<boolean> {
    return manager.existsBy(StartTask, { sandboxId, status: Not(In([...FINISHED_STATUSES])) });
  }

  /**
   * Removes a sandbox unless a conversation or an unfinished start uses it; without `cause`, the current request is
   * the cause. If it returns true, call `SandboxWorkerSignal.wake` after the commit.
   */
  async removeSandboxIfUnused(
    manager: EntityManager,
    userId: string,
    sandboxId: string,
    cause?: 'start_failed',
  ): Promise<boolean> {
    // Under the lock, the second of two removals sees what the first one removed.
    return (
      (await this.sandboxes.lock(manager, sandboxId, userId)) &&
      !(await manager.existsBy(AppConversation, { sandboxId })) &&
      !(await this.needsSandbox(manager, sandboxId)) &&
      (await this.sandboxes.transition(sandboxId, 'remove', {
        change: { deadlineAt: null },
        condition: { userId },
        manager,
        cause,
      }))
    );
  }

  /** Returns the id of the sandbox, or null. A worker about to store the conversation gets `StartSuperseded`. */
  async deleteOfConversation(
    manager: EntityManager,
    userId: string,
    conversationId: string,
  ): Promise<string | null> {
    const [[row]] = await manager.query<[RemovedStart[], number]>(REMOVE, [conversationId, userId]);
    // What a client began may go on there, and is never to see more by a deletion.
    if (row) {
      await this.sandboxes.limit(manager, row.sandbox_id, (before) => withinLimits(row.request, before));
    }
    return row?.sandbox_id ?? null;
  }
}

function withMaskedSecrets(request: StartRequest): StartRequest {
  const names = Object.keys(request.secrets ?? {});
  return { ...request, secrets: Object.fromEntries(names.map((name) => [name, MASK])) };
}
