import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockUser } from '../../../auth/user.repository.js';
import { AuditRepository } from '../../../audit/audit.repository.js';
import { DomainError, type InvalidInputError } from '../../../common/errors/domain-error.js';
import { toHexId } from '../../../common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { FollowedConversationRepository } from '../../events/followed-conversation.repository.js';
import { IdempotencyService, invalidKey } from '../../idempotency/idempotency.service.js';
import { type SandboxPlan, SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { pausedNotes, SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import { ConversationRepository } from '../conversation.repository.js';
import type { StartRequest, StartTask } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { type NewStartTask, StartTaskRepository } from '../start-task.repository.js';
import { KEEP_ALIVE_SECONDS } from './await-sandbox.step.js';
import { Delegation } from './delegation.js';
import { invalid, StartRequestResolver } from './start-request.resolver.js';

interface StartPlan {
  task: Omit<NewStartTask, 'notes' | 'sandboxMade'>;
  /** Null: the sandbox exists. */
  sandbox: SandboxPlan | null;
  /** The settings let no conversation begin: such a start makes no sandbox, and pauses none to make room. */
  isDoomed: boolean;
  /** The sandbox exists, and is paused or has failed. */
  resumes: boolean;
}

const IDEMPOTENCY_SCOPE = 'app-conversations';

/** A start that waits for quota occupies a worker of its host, which one user must not exhaust. */
const MAX_UNFINISHED = 25;
const RETRY_AFTER_SECONDS = 30;

/** Stores starts; the workflow does the rest. */
@Injectable()
export class ConversationStarter {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly queries: StartTaskQueries,
    private readonly conversations: ConversationRepository,
    private readonly idempotency: IdempotencyService,
    private readonly requests: StartRequestResolver,
    private readonly sandboxes: SandboxCreator,
    private readonly quota: SandboxQuota,
    private readonly worker: SandboxWorkerSignal,
    private readonly config: AppConfig,
    private readonly audit: AuditRepository,
    private readonly delegation: Delegation,
    private readonly logs: FollowedConversationRepository,
  ) {}

  /**
   * Returns at once; a repeated `idempotencyKey` returns the first task. Throws InvalidInputError; as `start`, and as
   * `Delegation.grant` for an agent.
   */
  async startFor(
    userId: string,
    body: StartConversationDto,
    idempotencyKey: string | null,
    terms: Pick<StartRequest, 'max_budget' | 'started_by_agent' | 'cause' | 'change_request'> = {},
  ): Promise<StartTaskRow> {
    const request = { ...(await this.requests.read(userId, body)), ...terms };
    const task = await this.start(userId, request, idempotencyKey);
    // The task of a repeated request may have come far, so the state of its sandbox matters.
    const current = task.status === 'WORKING' ? null : await this.queries.find(userId, task.id);
    return current ?? toRow(task);
  }

  /**
   * Stores task and sandbox, all or nothing. A repeated `idempotencyKey` returns the first task.
   * @throws InvalidInputError for an unknown sandbox, parent or specification, an id in use, or another request under
   *   the key
   * @throws DomainError conflict (`conversation_limit`); storage_full; forbidden for users without sandboxes; rate_limited, or with
   *   `sandbox_limit` when nothing may wait for quota
   */
  async start(userId: string, request: StartRequest, idempotencyKey: string | null): Promise<StartTask> {
    const id = randomUUID();
    const planning = this.plan(userId, id, request);
    // Judged in the transaction: a repetition succeeds even if its parent is gone by now.
    await Promise.allSettled([planning]);
    const requestHash = createHash('sha256').update(JSON.stringify(request)).digest();
    let created: StartTask | null = null;
    const task = await this.tasks.transaction(async (manager) => {
      const given = { userId, scope: IDEMPOTENCY_SCOPE, key: idempotencyKey, requestHash };
      const taskId = await this.idempotency.run(manager, given, async () => {
        created = await this.store(manager, await planning);
        return created.id;
      });
      return created ?? (await this.tasks.find(manager, taskId));
    });
    if (!task) {
      // The key's task was deleted with its conversation, or too many are newer.
      throw invalidKey(
        'The conversation that was started under this key has been deleted, or its start is not kept any more; use a new key.',
      );
    }
    if (created !== null && task.sandboxMade) {
      // The response goes first.
      setImmediate(() => this.worker.wake());
    }
    return task;
  }

  /** Reads what the start needs, and chooses all ids; a warm sandbox has its own. Throws InvalidInputError. */
  private async plan(userId: string, id: string, given: StartRequest): Promise<StartPlan> {
    const { sandboxId, hostId, sandboxExists, isStopped, workingDir, request } = await this.requests.target(
      userId,
      given,
    );
    const checked = sandboxExists ? null : await this.requests.checkSettings(userId, request);
    const known = checked?.configuration.sandbox;
    const sandbox = checked && (await this.sandboxes.plan(userId, given.sandbox_spec_id, known));
    return {
      task: {
        id,
        userId,
        status: 'WORKING',
        appConversationId: given.conversation_id ?? randomUUID(),
        sandboxId,
        hostId,
        workingDir,
        request,
      },
      sandbox,
      isDoomed: (checked?.problem ?? null) !== null,
      resumes: isStopped,
    };
  }

  private async store(manager: EntityManager, plan: StartPlan): Promise<StartTask> {
    const { task, resumes } = plan;
    const { appConversationId: conversationId } = task;
    if (task.request.conversation_id !== null && (await this.isIdInUse(manager, conversationId))) {
      throw idInUse();
    }
    await this.assertRoom(manager, task.userId);
    if (resumes) {
      await this.quota.assertAvailable(manager, task.userId);
    }
    const made = await this.createSandbox(manager, plan);
    const request = await this.delegation.grant(manager, task.userId, task.request);
    const stored = await this.tasks.insert(manager, { ...task, ...made, request });
    if (stored === null) {
      throw idInUse();
    }
    await this.audit.append(manager, {
      action: 'conversation.start',
      outcome: 'requested',
      resourceId: toHexId(conversationId),
      ownerId: task.userId,
      details: { sandbox_id: made.sandboxId, ...request.cause },
    });
    return stored;
  }

  private async assertRoom(manager: EntityManager, userId: string): Promise<void> {
    const { maxConversations } = this.config.agent;
    if (await this.conversations.hasAsMany(manager, userId, maxConversations)) {
      throw tooManyConversations(maxConversations);
    }
    await this.logs.requireRoom(userId, null, manager);
  }

  private async isIdInUse(manager: EntityManager, conversationId: string): Promise<boolean> {
    return (
      (await this.conversations.exists(manager, conversationId)) ||
      (await this.tasks.hasConversation(manager, conversationId))
    );
  }

  private async createSandbox(
    manager: EntityManager,
    { task: { sandboxId, userId, hostId, request }, sandbox: plan, isDoomed }: StartPlan,
  ): Promise<Pick<StartTask, 'sandboxId' | 'sandboxMade' | 'notes'>> {
    if (plan === null) {
      return { sandboxId, sandboxMade: true, notes: [] };
    }
    if (isDoomed) {
      await lockUser(manager, userId);
      await this.assertFewUnfinished(manager, userId);
      return { sandboxId, sandboxMade: false, notes: plan.notes };
    }
    const options = { hostId, keepAliveSeconds: KEEP_ALIVE_SECONDS, cause: request.cause };
    try {
      const { id, paused } = await this.sandboxes.create(manager, plan, options);
      return { sandboxId: id, sandboxMade: true, notes: [...plan.notes, ...pausedNotes(paused)] };
    } catch (error) {
      const mayWait = this.config.sandboxes.limitPolicy !== 'reject';
      if (!mayWait || !(error instanceof DomainError) || error.code !== 'sandbox_limit') {
        throw error;
      }
      // The task waits for quota, and the workflow creates the sandbox then.
      await this.assertFewUnfinished(manager, userId);
      return { sandboxId, sandboxMade: false, notes: plan.notes };
    }
  }

  /** Counts under the lock of the user. */
  private async assertFewUnfinished(manager: EntityManager, userId: string): Promise<void> {
    if ((await this.tasks.countUnfinished(manager, userId)) >= MAX_UNFINISHED) {
      throw new DomainError(
        'rate_limited',
        `${MAX_UNFINISHED} conversations are being started already, and all sandboxes are busy; wait for some of them.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
  }
}

function idInUse(): InvalidInputError {
  return invalid(['conversation_id'], 'Expected an id that is not in use.');
}

function toRow(task: StartTask): StartTaskRow {
  return {
    id: task.id,
    user_id: task.userId,
    status: task.status,
    detail: task.detail,
    app_conversation_id: task.appConversationId,
    sandbox_id: task.sandboxId,
    request: task.request,
    notes: task.notes,
    created_at: task.createdAt,
    updated_at: task.updatedAt,
    sandbox_status: null,
    address: null,
    expose_port: null,
    cursor_at: '',
  };
}

export function tooManyConversations(most: number): DomainError {
  const detail = `You have ${most} conversations, the most that are kept. Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.`;
  return new DomainError('conversation_limit', detail);
}
