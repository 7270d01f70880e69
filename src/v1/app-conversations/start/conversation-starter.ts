import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AuditRepository } from '../../../audit/audit.repository.js';
import { DomainError, InvalidInputError } from '../../../common/errors/domain-error.js';
import { toHexId } from '../../../common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { IdempotencyService } from '../../idempotency/idempotency.service.js';
import { type SandboxPlan, SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { pausedNotes, SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import { ConversationRepository } from '../conversation.repository.js';
import type { StartRequest, StartTask } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { type NewStartTask, StartTaskRepository } from '../start-task.repository.js';
import { KEEP_ALIVE_SECONDS } from './await-sandbox.step.js';
import { StartRequestResolver } from './start-request.resolver.js';
import { StartQueue } from './start.worker.js';

/** What a start needs before it can be stored. */
interface StartPlan {
  task: Omit<NewStartTask, 'notes' | 'sandboxMade'>;
  /** The sandbox to create; null: it exists. */
  sandbox: SandboxPlan | null;
  /** Whether the start may take a warm sandbox: one that is going to fail would use it up. */
  mayBeWarm: boolean;
  /** The sandbox exists and has to be resumed. */
  resumes: boolean;
}

const IDEMPOTENCY_SCOPE = 'app-conversations';

/** A start that waits for quota occupies a worker of its host: no user's waiting may hold up all others. */
const MAX_UNFINISHED = 25;
const RETRY_AFTER_SECONDS = 30;

/** Accepts starts of conversations: stores each with its job, and leaves the rest to the workflow. */
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
    private readonly queue: StartQueue,
    private readonly config: AppConfig,
    private readonly audit: AuditRepository,
  ) {}

  /**
   * Starts what a client asks for, and returns at once.
   *
   * @param idempotencyKey a repetition under it returns the task of the first request
   * @throws InvalidInputError for what cannot be started; as `start` does
   */
  async startFor(
    userId: string,
    body: StartConversationDto,
    idempotencyKey: string | null,
  ): Promise<StartTaskRow> {
    const request = await this.requests.read(userId, body);
    const task = await this.start(userId, request, idempotencyKey);
    // The task of a repeated request may have come far: then the state of its sandbox matters.
    const current = task.status === 'WORKING' ? null : await this.queries.find(userId, task.id);
    return current ?? toRow(task);
  }

  /**
   * Stores a start task, its sandbox if none is named, and its job, all or nothing, and returns at once.
   *
   * @param idempotencyKey `Idempotency-Key` of the request, if it had one: a repetition returns the task of the first
   * @throws InvalidInputError for a sandbox, parent or specification that the user does not have, a conversation id in
   *   use, and another request under the same key
   * @throws DomainError conflict (`conversation_limit`) when the user has as many conversations as are kept; forbidden when the user may have no sandboxes here; rate_limited when too many of the user's
   *   starts wait for quota, or (`sandbox_limit`) when it is exhausted and nothing may wait
   */
  async start(userId: string, request: StartRequest, idempotencyKey: string | null): Promise<StartTask> {
    const id = randomUUID();
    const planning = this.plan(userId, id, request);
    // Awaited before the transaction but judged in it: a repetition is answered even if its parent is gone by now.
    await Promise.allSettled([planning]);
    const requestHash = createHash('sha256').update(JSON.stringify(request)).digest();
    let created: StartTask | null = null;
    const task = await this.tasks.transaction(async (manager) => {
      const given = { userId, scope: IDEMPOTENCY_SCOPE, key: idempotencyKey, requestHash };
      const { resourceId } = await this.idempotency.run(manager, given, async () => {
        created = await this.store(manager, await planning);
        return created.id;
      });
      return created ?? (await this.tasks.find(manager, resourceId));
    });
    if (!task) {
      throw notKeptUnderKey();
    }
    if (created !== null && task.sandboxMade) {
      // The response goes first.
      setImmediate(() => this.worker.wake());
    }
    return task;
  }

  /**
   * Reads what the start needs, and chooses all ids; a warm sandbox has its own.
   *
   * @throws InvalidInputError for what the user does not have
   */
  private async plan(userId: string, id: string, given: StartRequest): Promise<StartPlan> {
    const { sandboxId, hostId, sandboxExists, isPaused, workingDir, request } = await this.requests.target(
      userId,
      given,
    );
    await this.queue.prepare(hostId);
    const [sandbox, checked] = sandboxExists
      ? [null, null]
      : await Promise.all([
          this.sandboxes.plan(userId, given.sandbox_spec_id),
          this.config.sandboxes.warm === 0 ? null : this.requests.checkSettings(userId, request),
        ]);
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
      mayBeWarm: (checked?.problem ?? null) === null,
      resumes: isPaused,
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
    const stored = await this.tasks.insert(manager, { ...task, ...made });
    await this.audit.append(manager, {
      action: 'conversation.start',
      outcome: 'requested',
      resourceId: toHexId(conversationId),
      ownerId: task.userId,
      details: { sandbox_id: made.sandboxId },
    });
    await this.queue.send(manager, stored);
    return stored;
  }

  private async assertRoom(manager: EntityManager, userId: string): Promise<void> {
    const { maxConversations } = this.config.agent;
    if (await this.conversations.hasAsMany(manager, userId, maxConversations)) {
      throw new DomainError(
        'conflict',
        'conversation_limit',
        `You have ${maxConversations} conversations, the most that are kept. Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.`,
      );
    }
  }

  private async isIdInUse(manager: EntityManager, conversationId: string): Promise<boolean> {
    return (
      (await this.conversations.exists(manager, conversationId)) ||
      (await this.tasks.hasConversation(manager, conversationId))
    );
  }

  private async createSandbox(
    manager: EntityManager,
    { task: { sandboxId, userId, hostId }, sandbox: plan, mayBeWarm }: StartPlan,
  ): Promise<Pick<StartTask, 'sandboxId' | 'sandboxMade' | 'notes'>> {
    if (plan === null) {
      return { sandboxId, sandboxMade: true, notes: [] };
    }
    const options = { id: mayBeWarm ? null : sandboxId, hostId, keepAliveSeconds: KEEP_ALIVE_SECONDS };
    const created = await this.sandboxes.create(manager, plan, options);
    if (created === 'busy') {
      await this.quota.assertAvailable(manager, userId);
      // The task waits for quota; the workflow creates the sandbox then.
      await this.assertFewUnfinished(manager, userId);
      return { sandboxId, sandboxMade: false, notes: plan.notes };
    }
    const notes = [...plan.notes, ...pausedNotes(created.paused)];
    return { sandboxId: created.id, sandboxMade: true, notes };
  }

  /** Counts under the lock of the user that the claim of quota took. */
  private async assertFewUnfinished(manager: EntityManager, userId: string): Promise<void> {
    if ((await this.tasks.countUnfinished(manager, userId)) >= MAX_UNFINISHED) {
      throw new DomainError(
        'rate_limited',
        'rate_limited',
        `${MAX_UNFINISHED} conversations are being started already, and all sandboxes are busy; wait for some of them.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
  }
}

function idInUse(): InvalidInputError {
  return new InvalidInputError([
    { loc: ['body', 'conversation_id'], msg: 'Expected an id that is not in use.', type: 'value_error' },
  ]);
}

/** The task that the key stands for was deleted with its conversation, or is not among the newest of its user any more. */
function notKeptUnderKey(): InvalidInputError {
  return new InvalidInputError([
    {
      loc: ['header', 'Idempotency-Key'],
      msg: 'The conversation that was started under this key has been deleted, or its start is not kept any more; use a new key.',
      type: 'value_error',
    },
  ]);
}

/** A task that has just begun; nothing is known of its sandbox yet. */
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
