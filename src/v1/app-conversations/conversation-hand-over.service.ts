import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { type SuspendedSandboxes, UserWork, type UserWorkOwner } from '../../auth/users.service.js';
import { ModelUsageRepository } from '../../usage/model-usage.repository.js';
import { FollowedConversation } from '../events/followed-conversation.entity.js';
import { SandboxWorkerSignal } from '../sandboxes/sandbox-events.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { AppConversation } from './conversation.entity.js';
import { ConversationRepository } from './conversation.repository.js';
import { FollowedPullRequest } from './followed/followed-pull-request.entity.js';
import { KeptChanges } from './kept-changes/kept-changes.repository.js';
import { FINISHED_STATUSES, StartTask } from './start-task.entity.js';
import { StartTaskRepository } from './start-task.repository.js';

/** All that makes a conversation what it is. Messages that wait go with their user. */
const ROWS = [Sandbox, AppConversation, StartTask, FollowedConversation, FollowedPullRequest, KeptChanges];

const DISABLED = 'Paused because its user was disabled.';
const STOPPED = 'Paused because its user was removed.';
const NOT_BEGUN = 'Its user was removed before it had begun.';
const UNFOLLOWED = 'Its user was removed.';

/** Gives conversations and sandboxes of a removed user to another one, and pauses those of a disabled user. */
@Injectable()
export class ConversationHandOverService implements OnModuleInit, UserWorkOwner {
  constructor(
    private readonly work: UserWork,
    private readonly sandboxes: SandboxRepository,
    private readonly worker: SandboxWorkerSignal,
    private readonly usage: ModelUsageRepository,
    private readonly starts: StartTaskRepository,
    private readonly conversations: ConversationRepository,
  ) {}

  onModuleInit(): void {
    this.work.add(this);
  }

  async exists(manager: EntityManager, userId: string): Promise<boolean> {
    return (
      (await manager.existsBy(Sandbox, { userId })) || (await manager.existsBy(AppConversation, { userId }))
    );
  }

  /** Agent servers have the credentials of the first user in memory: a resume gives them those of the other. */
  async handOver(manager: EntityManager, from: string, to: string): Promise<void> {
    // Starts before their sandboxes, as in all ends of starts: in the opposite order, two could wait for each other.
    await this.endWork(manager, from);
    // Those of the request are the first user's own.
    await manager.update(StartTask, { userId: from }, { requestSecrets: null });
    for (const { id } of await manager.find(Sandbox, { select: { id: true }, where: { userId: from } })) {
      await this.sandboxes.transition(id, 'pause', { manager, change: { statusDetail: STOPPED } });
    }
    for (const entity of ROWS) {
      await manager.update(entity, { userId: from }, { userId: to });
    }
    await this.usage.handOver(manager, from, to);
  }

  /** What one user has asked for does not go on by itself with the credentials of another. */
  private async endWork(manager: EntityManager, userId: string): Promise<void> {
    const where = { userId, status: Not(In([...FINISHED_STATUSES])) };
    const starts = await manager.find(StartTask, { where, lock: { mode: 'pessimistic_write' } });
    for (const start of starts) {
      await this.starts.advance(start, 'ERROR', { detail: NOT_BEGUN }, manager);
      if (start.request.sandbox_id === null) {
        await this.sandboxes.closeSetup(manager, start.sandboxId);
      }
      if (start.status === 'STARTING_CONVERSATION') {
        await this.conversations.remove(manager, start.appConversationId);
      }
    }
    const followed = { userId, nextLookAt: Not(IsNull()) };
    await manager.update(FollowedPullRequest, followed, {
      state: 'stopped',
      reason: UNFOLLOWED,
      nextLookAt: null,
      unanswered: [],
      attempt: () => 'attempt + 1',
    });
  }

  async suspend(manager: EntityManager, userId: string, how: SuspendedSandboxes): Promise<void> {
    const select = { id: true, generation: true };
    for (const { id, generation } of await manager.find(Sandbox, { select, where: { userId } })) {
      const stopped = how === 'stop' && { stoppedGeneration: generation };
      await this.sandboxes.transition(id, 'pause', {
        manager,
        change: { statusDetail: DISABLED, ...stopped },
      });
    }
  }

  changed(): void {
    this.worker.wake();
  }
}
