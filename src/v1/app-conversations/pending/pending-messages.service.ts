import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Content } from '@slipway/agent-protocol/events.js';
import { lockUser } from '../../../auth/user.repository.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { unknownConversation } from '../../events/events.service.js';
import { FollowedConversationRepository } from '../../events/followed-conversation.repository.js';
import { toWireStatus } from '../../sandboxes/sandbox-status.js';
import { sandboxNotRunning } from '../running-conversations.js';
import { ConversationQueries } from '../conversation.queries.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { FIRST_MESSAGE_ID, PendingMessageRepository } from './pending-message.repository.js';

const MAX_PENDING = 10;
/** Each message may be as large as a body. */
const MAX_PENDING_OF_USER = 100;
const RETRY_AFTER_SECONDS = 5;
/** Precedes the id of a start task, for clients that know no conversation yet. */
const TASK_PREFIX = 'task-';

const SWEEP_MS = 5_000;

interface QueuedMessage {
  id: string;
  /** 1: delivered next. */
  position: number;
}

/** Takes messages, and drops those whose conversation will never be there. */
@Injectable()
export class PendingMessagesService extends BackgroundLoop {
  /** Sweeps have looked for orphans up to this message. */
  private checkedUntil = FIRST_MESSAGE_ID;

  constructor(
    private readonly messages: PendingMessageRepository,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly logs: FollowedConversationRepository,
  ) {
    super(SWEEP_MS, new Logger(PendingMessagesService.name), 'failed to remove orphaned messages', 'warn');
  }

  /**
   * Keeps a message for a conversation, or `task-` and the id of a start, until it can be delivered.
   * @throws DomainError not_found, conflict when the start failed, gone when the sandbox is, rate_limited, storage_full
   */
  async queue(userId: string, givenId: string, content: Content[]): Promise<QueuedMessage> {
    const conversationId = await this.conversationId(userId, givenId);
    await this.logs.requireRoom(userId, conversationId);
    const id = randomUUID();
    const position = await this.messages.transaction((manager) =>
      this.enqueue(manager, { id, userId, conversationId, content }),
    );
    return { id, position };
  }

  /**
   * Adds a message in the caller's transaction, for a conversation that exists, and returns its position.
   * @throws DomainError rate_limited
   */
  async enqueue(
    manager: EntityManager,
    message: { id: string; userId: string; conversationId: string; content: Content[] },
  ): Promise<number> {
    const { userId, conversationId } = message;
    await lockUser(manager, userId);
    const count = await this.messages.count(manager, conversationId);
    if (count >= MAX_PENDING) {
      throw tooManyPending();
    }
    if ((await this.messages.countOfUser(manager, userId)) >= MAX_PENDING_OF_USER) {
      throw new DomainError(
        'rate_limited',
        `${MAX_PENDING_OF_USER} messages wait for your conversations already, the most allowed: resume their sandboxes, or delete some of them.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    await this.messages.add(manager, message);
    return count + 1;
  }

  private async conversationId(userId: string, givenId: string): Promise<string> {
    const isTask = givenId.startsWith(TASK_PREFIX);
    const id = parseHexId(isTask ? givenId.slice(TASK_PREFIX.length) : givenId);
    if (id === null) {
      throw unknownConversation();
    }
    const task = isTask ? await this.startTasks.find(userId, id) : null;
    if (isTask && task === null) {
      throw unknownConversation();
    }
    const conversationId = task?.app_conversation_id ?? id;
    const conversation = await this.conversations.find(userId, conversationId);
    if (conversation === null) {
      requireUnfinished(task ?? (await this.startTasks.newest(userId, conversationId)));
    } else if (toWireStatus(conversation.sandbox_status, conversation.address) === 'MISSING') {
      throw sandboxNotRunning('MISSING', conversation.sandbox_id);
    }
    return conversationId;
  }

  protected async work(): Promise<void> {
    this.checkedUntil = await this.messages.removeOrphans(this.checkedUntil);
  }
}

export function tooManyPending(): DomainError {
  const detail = `${MAX_PENDING} messages wait for this conversation already, the most allowed: try again once it has taken some.`;
  return new DomainError('rate_limited', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

export function startFailed(): DomainError {
  const detail = 'The conversation could not be started (its start task says why): start another one.';
  return new DomainError('conflict', detail);
}

function requireUnfinished(task: StartTaskRow | null): void {
  if (task?.status === 'ERROR') {
    throw startFailed();
  }
  if (task === null || task.status === 'READY') {
    throw unknownConversation();
  }
}
