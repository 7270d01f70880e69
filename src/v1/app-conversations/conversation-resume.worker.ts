import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { jittered } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { type ResumableConversation, ConversationQueries } from './conversation.queries.js';
import { ConversationRestorer } from './conversation.restorer.js';

/** The sweep finds resumes that were missed because a process died or the agent server was not ready. */
const SWEEP_MS = 5_000;
/** While none is to be resumed. */
const IDLE_MS = 15_000;

/** Restores conversations after a restart of their agent server: at once in sandboxes that this process started, else by a sweep of this host. */
@Injectable()
export class ConversationResumeWorker extends BackgroundLoop implements OnModuleInit {
  private readonly resumes = new Map<string, Promise<void>>();

  constructor(
    private readonly sandboxes: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly conversations: ConversationQueries,
    private readonly restorer: ConversationRestorer,
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
      await this.restorer.restore(conversation);
    } catch (error) {
      this.logger.warn('failed to resume conversation', {
        conversation_id: conversation.id,
        error: errorMessage(error),
      });
    }
  }
}
