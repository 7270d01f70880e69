import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Content } from '@slipway/agent-protocol/events.js';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { lockUser } from '../../../auth/user.repository.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { parseHexId } from '../../../common/identifiers.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import { unknownConversation } from '../../events/events.service.js';
import { FollowedConversationRepository } from '../../events/followed-conversation.repository.js';
import { readLogAfter } from '../../events/follow/log-sync.js';
import { SyncRequests } from '../../events/follow/sync-requests.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { toWireStatus } from '../../sandboxes/sandbox-status.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { sandboxNotRunning } from '../conversation-actions.service.js';
import { ConversationQueries, type ConversationRow } from '../conversation.queries.js';
import { CredentialRefreshService } from '../credential-refresh.service.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import {
  type ClaimedMessage,
  FIRST_MESSAGE_ID,
  PendingMessageRepository,
} from './pending-message.repository.js';

const MAX_PENDING = 10;
/** Each message may be as large as a body. */
const MAX_PENDING_OF_USER = 100;
const RETRY_AFTER_SECONDS = 5;
/** Precedes the id of a start task, for clients that know no conversation yet. */
const TASK_PREFIX = 'task-';

/** The sweep finds sandboxes that became ready unnoticed, and failed deliveries. */
const SWEEP_MS = 5_000;
const MAX_PAUSE_SECONDS = 300;
/** The agent server refuses a message for good. */
const NEVER_TAKEN = new Set([413, 422]);

interface QueuedMessage {
  id: string;
  /** 1: delivered next. */
  position: number;
}

/** Delivers messages in order, each once: after an unknown outcome, the next attempt searches the log first. */
@Injectable()
export class PendingMessagesService extends BackgroundLoop {
  private readonly turns = new KeyedLimit(1);
  /** Sweeps have looked for orphans up to this message. */
  private checkedUntil = FIRST_MESSAGE_ID;

  constructor(
    private readonly messages: PendingMessageRepository,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: CredentialRefreshService,
    private readonly sandboxes: SandboxRepository,
    private readonly syncRequests: SyncRequests,
    private readonly host: HostIdentity,
    private readonly logs: FollowedConversationRepository,
  ) {
    super(SWEEP_MS, new Logger(PendingMessagesService.name), 'failed to find pending messages', 'warn');
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
    this.deliver(conversationId);
    return { id, position };
  }

  /** In the caller's transaction, for a conversation that exists; returns the position. @throws DomainError rate_limited */
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

  /** Delivers what waits, if the sandbox runs; returns at once. */
  deliver(conversationId: string): void {
    if (this.stopping) {
      return;
    }
    const work = this.deliverDue(conversationId).catch((error: unknown) => {
      this.logger.warn('failed to deliver pending messages', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    });
    this.beside(work);
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
    (await this.messages.deliverable(this.host.id, null)).forEach(({ id }) => this.deliver(id));
  }

  private async deliverDue(conversationId: string): Promise<void> {
    await this.turns.run(conversationId, async () => {
      for (const { id, userId } of await this.messages.deliverable(this.host.id, conversationId)) {
        const conversation = await this.conversations.find(userId, id);
        const target = conversation && (await this.running.target(conversation.sandbox_id));
        if (conversation && target) {
          await this.deliverAll(target, conversation);
        }
      }
    });
  }

  private async deliverAll(target: RunningSandbox, conversation: ConversationRow): Promise<void> {
    while (!this.stopping) {
      const message = await this.messages.claimFirst(conversation.id);
      if (message === null || !(await this.deliverOne(target, conversation, message))) {
        return;
      }
    }
  }

  /** Returns whether the next message may follow. */
  private async deliverOne(
    target: RunningSandbox,
    conversation: ConversationRow,
    message: ClaimedMessage,
  ): Promise<boolean> {
    const { id } = conversation;
    try {
      if (!(await this.hasArrived(target, id, message))) {
        this.sandboxes.touch(conversation.sandbox_id);
        const body = {
          role: 'user' as const,
          content: message.content,
          run: true,
          // A restored database does not know that it was delivered.
          ...(this.credentials.isSupported(target) && { id: message.id }),
        };
        await this.syncRequests.expecting(id, 'running', () =>
          this.credentials.runWithRefresh(target, conversation, () =>
            this.agentServers.sendMessage(target, id, body),
          ),
        );
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      const isNeverTaken = error.status !== null && NEVER_TAKEN.has(error.status);
      this.logger.warn('failed to deliver pending message', {
        conversation_id: id,
        message_id: message.id,
        dropped: isNeverTaken,
        error: error.message,
      });
      if (!isNeverTaken) {
        await this.messages.postpone(message.id, Math.min(2 ** message.attempts, MAX_PAUSE_SECONDS));
        return false;
      }
    }
    await this.messages.remove(message.id);
    this.syncRequests.requestSync(id);
    return true;
  }

  /** Notes the end of the log before the first attempt. */
  private async hasArrived(
    target: AgentServerTarget,
    conversationId: string,
    { id, content, afterEventId }: ClaimedMessage,
  ): Promise<boolean> {
    if (afterEventId === null) {
      await this.messages.noteBeginning(
        id,
        (await this.agentServers.lastEventId(target, conversationId)) ?? '',
      );
      return false;
    }
    const expected = messageKey(content);
    const pages = readLogAfter(
      (pageId) => this.agentServers.events(target, conversationId, { pageId }),
      afterEventId === '' ? null : afterEventId,
    );
    for await (const page of pages) {
      if (
        page.some(
          (event) =>
            isUserMessage(event) && messageKey(jsonList(event, 'llm_message', 'content')) === expected,
        )
      ) {
        return true;
      }
    }
    return false;
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

function isUserMessage(event: unknown): boolean {
  return jsonText(event, 'kind') === 'MessageEvent' && jsonText(event, 'source') === 'user';
}

/** Ignores members that servers add to the parts. */
function messageKey(content: readonly unknown[]): string {
  return JSON.stringify(content.map((part) => jsonAt(part, 'text') ?? jsonAt(part, 'image_urls') ?? null));
}
