import { Injectable, Logger } from '@nestjs/common';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError, unlessStatus } from '@slipway/agent-client/agent-server.http.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import type { ResumableConversation } from './conversation.queries.js';
import { ConversationRepository } from './conversation.repository.js';
import { CredentialRefreshService } from './credential-refresh.service.js';
import { PendingMessagesWorker } from './pending/pending-messages.worker.js';

/** Statuses in which the agent waits for its user, whatever was observed before. */
const WAITING_FOR_USER: ReadonlySet<ConversationStatus> = new Set(['finished', 'waiting_for_confirmation']);

/** Gives a restarted agent server the credentials of a conversation, then the work, unless the user had interrupted it. */
@Injectable()
export class ConversationRestorer {
  private readonly logger = new Logger(ConversationRestorer.name);
  /** Conversations of stock servers that were running, until they run again. */
  private readonly interrupted = new Set<string>();

  constructor(
    private readonly repository: ConversationRepository,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: CredentialRefreshService,
    private readonly followed: FollowedConversationRepository,
    private readonly pendingMessages: PendingMessagesWorker,
  ) {}

  /** Repeatable. @throws AgentServerError, SecretDecryptionError; a later call may succeed */
  async restore(conversation: ResumableConversation): Promise<void> {
    const target = await this.running.target(conversation.sandboxId);
    if (!target) {
      this.interrupted.delete(conversation.id);
      return;
    }
    if (this.credentials.dialectOf(target).keepsCredentials) {
      await this.runAtStockServer(target, conversation);
    } else {
      await this.refreshAndRun(target, conversation);
    }
    await this.repository.setGeneration(conversation.id, target.generation);
    this.pendingMessages.deliver();
  }

  private async refreshAndRun(target: RunningSandbox, conversation: ResumableConversation): Promise<void> {
    const { id } = conversation;
    const remote = await this.credentials.refresh(target, conversation);
    if (!remote) {
      this.logger.warn('failed to find conversation at its agent server', { conversation_id: id });
      return;
    }
    if (!remote.wasRunning) {
      return;
    }
    if (target.stoppedByUser) {
      // Clears the server's memory of the running conversation, which would count again after the next start.
      await this.agentServers.pause(target, id);
      await this.followed.updateState(id, { executionStatus: 'paused' });
      return;
    }
    try {
      await this.run(target, id);
    } catch (error) {
      // The user has been told about the missing key; another attempt would not help.
      if (!(error instanceof AgentServerError && error.status === 400)) {
        throw error;
      }
      this.logger.warn('failed to run conversation after a restart', {
        conversation_id: id,
        error: error.detail,
      });
    }
  }

  /**
   * The stock server keeps its credentials but not that a conversation was running: while loading it sets another
   * status, which soon replaces the last observed one.
   */
  private async runAtStockServer(
    target: RunningSandbox,
    { id, executionStatus }: ResumableConversation,
  ): Promise<void> {
    if (target.stoppedByUser) {
      this.interrupted.delete(id);
      if (executionStatus === 'running') {
        await this.followed.updateState(id, { executionStatus: 'paused' });
      }
      return;
    }
    if (executionStatus === 'running') {
      this.interrupted.add(id);
    }
    if (!this.interrupted.has(id)) {
      return;
    }
    const remote = await this.agentServers.findConversation(target, id);
    if (remote && !WAITING_FOR_USER.has(remote.status)) {
      await this.run(target, id);
    }
    this.interrupted.delete(id);
  }

  private async run(target: RunningSandbox, id: string): Promise<void> {
    // 409: the user was faster, so it runs already.
    await unlessStatus([409], this.agentServers.run(target, id));
  }
}
