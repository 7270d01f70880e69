import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AuditRepository } from '../../../audit/audit.repository.js';
import { lockUser } from '../../../auth/user.repository.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import type { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { FollowedConversationRepository } from '../../events/followed-conversation.repository.js';
import { type SandboxPlan, SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { pausedNotes, SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import { ConversationRepository } from '../conversation.repository.js';
import type { StartTask } from '../start-task.entity.js';
import { type NewStartTask, StartTaskRepository } from '../start-task.repository.js';
import { KEEP_ALIVE_SECONDS } from './await-sandbox.step.js';
import { Delegation } from './delegation.js';
import { invalid } from './start-request.reader.js';

export interface StartPlan {
  task: Omit<NewStartTask, 'notes' | 'sandboxMade'>;
  /** Null: the sandbox exists. */
  sandbox: SandboxPlan | null;
  /** The settings let no conversation begin: such a start makes no sandbox, and pauses none to make room. */
  isDoomed: boolean;
  /** The sandbox exists, and is paused or has failed. */
  resumes: boolean;
}

/** A start that waits, for quota or for others in its sandbox, occupies a worker of its host, which one user must not exhaust. */
const MAX_UNFINISHED = 25;
const RETRY_AFTER_SECONDS = 30;

/** Stores a start with its sandbox, if its user may have both. */
@Injectable()
export class StartAdmission {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly sandboxes: SandboxCreator,
    private readonly quota: SandboxQuota,
    private readonly config: AppConfig,
    private readonly audit: AuditRepository,
    private readonly delegation: Delegation,
    private readonly logs: FollowedConversationRepository,
  ) {}

  /** Stores a start in the caller's transaction. @throws DomainError, InvalidInputError */
  async store(manager: EntityManager, plan: StartPlan): Promise<StartTask> {
    const { task, resumes } = plan;
    const { appConversationId: conversationId } = task;
    if (task.request.conversation_id !== null && (await this.isIdInUse(manager, conversationId))) {
      throw idInUse();
    }
    await lockUser(manager, task.userId);
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
      await this.assertFewUnfinished(manager, userId);
      return { sandboxId, sandboxMade: true, notes: [] };
    }
    if (isDoomed) {
      await this.assertFewUnfinished(manager, userId);
      return { sandboxId, sandboxMade: false, notes: plan.notes };
    }
    const options = { hostId, keepAliveSeconds: KEEP_ALIVE_SECONDS, cause: request.cause, hasSetup: true };
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
        `${MAX_UNFINISHED} conversations are being started already, the most that may wait; wait for some of them.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
  }
}

function idInUse(): InvalidInputError {
  return invalid(['conversation_id'], 'Expected an id that is not in use.');
}

export function tooManyConversations(most: number): DomainError {
  const detail = `You have ${most} conversations, the most that are kept. Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.`;
  return new DomainError('conversation_limit', detail);
}
