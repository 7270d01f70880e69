import { Injectable, Logger } from '@nestjs/common';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import type { LeaseEnd } from '@slipway/database/leased-rows.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../../../database/leased-work.module.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { readLogAfter } from '../../events/log-sync/log-sync.js';
import { SyncRequests } from '../../events/log-sync/sync-requests.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { ConversationQueries } from '../conversation.queries.js';
import type { ConversationRow } from '../conversation-row.js';
import { CredentialRefreshService } from '../credential-refresh.service.js';
import { type DueMessage, MAX_DELIVERABLE, PendingMessageRepository } from './pending-message.repository.js';

const OPTIONS: LeasedWorkOptions = {
  queue: 'pending-message',
  places: MAX_DELIVERABLE,
  // One to a sandbox that hangs keeps no place from others.
  slowAfterMs: 5_000,
  leaseMs: 120_000,
  // Finds sandboxes that became ready unnoticed, and failed deliveries.
  pollMs: 5_000,
  pauseMs: 2_000,
  mostPauseMs: 300_000,
};
/** Pause before the next try when the sandbox has stopped meanwhile. */
const LOOK_AGAIN_MS = 1_000;
/** The agent server refuses a message for good. */
const NEVER_TAKEN = new Set([413, 422]);

/** Delivers messages in order, each once: after an unknown outcome, the next attempt searches the log first. */
@Injectable()
export class PendingMessagesWorker extends ServiceLeasedWorker<DueMessage> {
  constructor(
    shared: LeasedWork,
    private readonly messages: PendingMessageRepository,
    private readonly conversations: ConversationQueries,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: CredentialRefreshService,
    private readonly sandboxes: SandboxRepository,
    private readonly syncRequests: SyncRequests,
  ) {
    super(OPTIONS, shared, messages.leases, new Logger(PendingMessagesWorker.name));
  }

  /** Delivers what waits for sandboxes that run; returns at once. */
  deliver(): void {
    this.lookNow();
  }

  protected async work(message: DueMessage): Promise<LeaseEnd | 'ended'> {
    const { id, userId, conversationId, attempts } = message;
    const conversation = await this.conversations.find(userId, conversationId);
    const target = conversation && (await this.running.target(conversation.sandbox_id));
    if (!target) {
      return { dueAt: this.after(LOOK_AGAIN_MS), counts: false };
    }
    try {
      if (!(await this.deliverTo(target, conversation, message))) {
        return { dueAt: null };
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      const isNeverTaken = error.status !== null && NEVER_TAKEN.has(error.status);
      this.logger.warn('failed to deliver pending message', {
        conversation_id: conversationId,
        message_id: id,
        dropped: isNeverTaken,
        error: error.message,
      });
      if (!isNeverTaken) {
        return { dueAt: this.after(this.pause(attempts)) };
      }
    }
    const isRemoved = await this.messages.remove(message);
    this.syncRequests.requestSync(conversationId);
    return isRemoved ? 'ended' : { dueAt: null };
  }

  /** Unless it has arrived before; false when another process has it by now. Notes the end of the log before the first attempt. */
  private async deliverTo(
    target: RunningSandbox,
    conversation: ConversationRow,
    message: DueMessage,
  ): Promise<boolean> {
    const { id, afterEventId, content } = message;
    const { id: conversationId, sandbox_id: sandboxId } = conversation;
    if (afterEventId === null) {
      const lastEventId = (await this.agentServers.lastEventId(target, conversationId)) ?? '';
      if (!(await this.messages.noteBeginning(message, lastEventId))) {
        return false;
      }
    } else if (await this.hasArrived(target, message, afterEventId)) {
      return true;
    }
    this.sandboxes.touch(sandboxId);
    // The id, as a restored database does not know that it was delivered.
    const body = this.credentials.dialectOf(target).message({ role: 'user', content, run: true, id });
    await this.syncRequests.expecting(conversationId, 'running', () =>
      this.credentials.runWithRefresh(target, conversation, () =>
        this.agentServers.sendMessage(target, conversationId, body),
      ),
    );
    return true;
  }

  private async hasArrived(
    target: RunningSandbox,
    { conversationId, content }: DueMessage,
    afterEventId: string,
  ): Promise<boolean> {
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
