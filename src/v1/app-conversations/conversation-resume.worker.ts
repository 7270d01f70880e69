import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { ConversationResumeService } from './conversation-resume.service.js';
import { ConversationQueries, type ResumableConversation } from './conversation.queries.js';

/** The sweep finds resumes that were missed because a process died or the agent server was not ready. */
const SWEEP_MS = 5_000;

/** Resumes conversations at once in sandboxes that this process started, else by a sweep of this host. */
@Injectable()
export class ConversationResumeWorker extends BackgroundLoop implements OnModuleInit {
  private readonly resumes = new Map<string, Promise<void>>();
  private stopping = false;

  constructor(
    private readonly sandboxes: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly conversations: ConversationQueries,
    private readonly resumption: ConversationResumeService,
  ) {
    const logger = new Logger(ConversationResumeWorker.name);
    super(SWEEP_MS, logger, 'failed to find conversations to resume', 'warn');
  }

  onModuleInit(): void {
    // Not awaited, so that a hanging agent server holds up neither the service nor other sandboxes.
    this.sandboxes.on('running', (sandboxId) => void this.resume(sandboxId));
  }

  override async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    await Promise.all([super.beforeApplicationShutdown(), ...this.resumes.values()]);
  }

  /** Calls during the work share it. */
  resume(sandboxId: string): Promise<void> {
    const current = this.resumes.get(sandboxId);
    if (current || this.stopping) {
      return current ?? Promise.resolve();
    }
    const work = this.resumeAll(sandboxId).finally(() => this.resumes.delete(sandboxId));
    this.resumes.set(sandboxId, work);
    return work;
  }

  protected async work(): Promise<void> {
    const sandboxIds = await this.conversations.sandboxesToResume(this.host.id);
    await Promise.all(sandboxIds.map((id) => this.resume(id)));
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
      await this.resumption.resume(conversation);
    } catch (error) {
      this.logger.warn('failed to resume conversation', {
        conversation_id: conversation.id,
        error: errorMessage(error),
      });
    }
  }
}
