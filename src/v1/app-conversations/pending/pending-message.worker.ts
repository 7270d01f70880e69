import { Injectable, Logger } from '@nestjs/common';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import { SyncRequests } from '../../events/follow/sync-requests.js';
import { readLogAfter } from '../../events/follow/log-sync.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { ConversationQueries, type ConversationRow } from '../conversation.queries.js';
import { CredentialRefreshService } from '../credential-refresh.service.js';
import {
  type ClaimedMessage,
  FIRST_MESSAGE_ID,
  PendingMessageRepository,
} from './pending-message.repository.js';

/** The sweep finds sandboxes that became ready unnoticed, and failed deliveries. */
const SWEEP_MS = 5_000;
const MAX_PAUSE_SECONDS = 300;
/** The agent server refuses a message for good. */
const NEVER_TAKEN = new Set([413, 422]);

/** Delivers messages in order, each once: after an unknown outcome, the next attempt searches the log first. */
@Injectable()
export class PendingMessageWorker extends BackgroundLoop {
  private readonly turns = new KeyedLimit(1);
  /** Sweeps have looked for orphans up to this message. */
  private checkedUntil = FIRST_MESSAGE_ID;

  constructor(
    private readonly messages: PendingMessageRepository,
    private readonly conversations: ConversationQueries,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: CredentialRefreshService,
    private readonly sandboxes: SandboxRepository,
    private readonly syncRequests: SyncRequests,
    private readonly host: HostIdentity,
  ) {
    super(SWEEP_MS, new Logger(PendingMessageWorker.name), 'failed to find pending messages', 'warn');
  }

  /** Returns at once. */
  wake(conversationId: string): void {
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

  protected async work(): Promise<void> {
    this.checkedUntil = await this.messages.removeOrphans(this.checkedUntil);
    (await this.messages.deliverable(this.host.id, null)).forEach(({ id }) => this.wake(id));
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
      if (message === null || !(await this.deliver(target, conversation, message))) {
        return;
      }
    }
  }

  /** Returns whether the next message may follow. */
  private async deliver(
    target: RunningSandbox,
    conversation: ConversationRow,
    message: ClaimedMessage,
  ): Promise<boolean> {
    const { id } = conversation;
    try {
      if (!(await this.hasArrived(target, id, message))) {
        this.sandboxes.touch(conversation.sandbox_id);
        const body = { role: 'user' as const, content: message.content, run: true };
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

function isUserMessage(event: unknown): boolean {
  return jsonText(event, 'kind') === 'MessageEvent' && jsonText(event, 'source') === 'user';
}

/** Ignores members that servers add to the parts. */
function messageKey(content: readonly unknown[]): string {
  return JSON.stringify(content.map((part) => jsonAt(part, 'text') ?? jsonAt(part, 'image_urls') ?? null));
}
