import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { jittered } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError, unlessStatus } from '@slipway/agent-client/agent-server.http.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { type ResumableConversation, ConversationQueries } from './conversation.queries.js';
import { ConversationRepository } from './conversation.repository.js';
import { CredentialRefreshService } from './credential-refresh.service.js';
import { PendingMessagesWorker } from './pending/pending-messages.worker.js';

/** Statuses in which the agent waits for its user, whatever was observed before. */
const WAITING_FOR_USER: ReadonlySet<ConversationStatus> = new Set(['finished', 'waiting_for_confirmation']);

/** The sweep finds resumes that were missed because a process died or the agent server was not ready. */
const SWEEP_MS = 5_000;
/** While none is to be resumed. */
const IDLE_MS = 15_000;

/**
 * After a restart of the agent server: credentials first, then the work, unless the user had interrupted it. At once in
 * sandboxes that this process started, else by a sweep of this host.
 */
@Injectable()
export class ConversationResumeWorker extends BackgroundLoop implements OnModuleInit {
  private readonly resumes = new Map<string, Promise<void>>();
  /** Conversations of stock servers that were running, until they run again. */
  private readonly interrupted = new Set<string>();

  constructor(
    private readonly sandboxes: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly conversations: ConversationQueries,
    private readonly repository: ConversationRepository,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: CredentialRefreshService,
    private readonly followed: FollowedConversationRepository,
    private readonly pendingMessages: PendingMessagesWorker,
  ) {
    const logger = new Logger(ConversationResumeWorker.name);
    super(SWEEP_MS, logger, 'failed to find conversations to resume', 'warn');
  }

  onModuleInit(): void {
    // Not awaited, so that a hanging agent server holds up neither the service nor other sandboxes.
    this.sandboxes.on('running', (sandboxId) => {
      void this.resume(sandboxId);
      this.loop.within(SWEEP_MS);
    });
  }

  /** Calls during the work share it. */
  resume(sandboxId: string): Promise<void> {
    const current = this.resumes.get(sandboxId);
    if (current || this.stopping) {
      return current ?? Promise.resolve();
    }
    const work = this.resumeAll(sandboxId).finally(() => this.resumes.delete(sandboxId));
    this.resumes.set(sandboxId, work);
    this.beside(work);
    return work;
  }

  protected async work(): Promise<number | void> {
    const sandboxIds = await this.conversations.sandboxesToResume(this.host.id);
    await Promise.all(sandboxIds.map((id) => this.resume(id)));
    return sandboxIds.length === 0 ? jittered(IDLE_MS) : undefined;
  }

  private async resumeAll(sandboxId: string): Promise<void> {
    try {
      for (const conversation of await this.conversations.toResume(sandboxId)) {
        if (this.stopping) {
          return;
        }
        await this.resumeOne(conversation);
      }
    } catch (error) {
      this.logger.warn('failed to resume conversations', {
        sandbox_id: sandboxId,
        error: errorMessage(error),
      });
    }
  }

  /** A failure does not hold up other conversations; the next sweep tries again. */
  private async resumeOne(conversation: ResumableConversation): Promise<void> {
    try {
      await this.restore(conversation);
    } catch (error) {
      this.logger.warn('failed to resume conversation', {
        conversation_id: conversation.id,
        error: errorMessage(error),
      });
    }
  }

  /**
   * Restores the credentials, and runs a conversation that the service or a failure interrupted. Repeatable.
   * @throws AgentServerError, SecretDecryptionError; a later call may succeed
   */
  private async restore(conversation: ResumableConversation): Promise<void> {
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
