import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { ConversationResumeService } from './conversation-resume.service.js';
import { ConversationQueries, type ResumableConversation } from './conversation.queries.js';

/**
 * Interval of the sweep for missed resumes: another process started the sandbox and died, or the agent server was not
 * ready.
 */
const SWEEP_MS = 5_000;

/**
 * Resumes conversations whose agent servers were restarted: at once in sandboxes that this process started, and by a
 * sweep in all sandboxes of this host.
 */
@Injectable()
export class ConversationResumeWorker implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(ConversationResumeWorker.name);
  private readonly work = new Map<string, Promise<void>>();
  private readonly loop = new RepeatedWork(
    SWEEP_MS,
    () => this.sweep(),
    (error) => {
      this.logger.warn('failed to find conversations to resume', { error: errorMessage(error) });
    },
  );
  private stopping = false;

  constructor(
    private readonly sandboxes: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly conversations: ConversationQueries,
    private readonly resumption: ConversationResumeService,
  ) {}

  onModuleInit(): void {
    // Not awaited, so that an agent server that hangs holds up neither the service nor other sandboxes.
    this.sandboxes.onRunning((sandboxId) => void this.resume(sandboxId));
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    await Promise.all([this.loop.stop(), ...this.work.values()]);
  }

  /** Resumes the conversations of a sandbox. Calls during the work share it. */
  resume(sandboxId: string): Promise<void> {
    const current = this.work.get(sandboxId);
    if (current || this.stopping) {
      return current ?? Promise.resolve();
    }
    const work = this.resumeAll(sandboxId).finally(() => this.work.delete(sandboxId));
    this.work.set(sandboxId, work);
    return work;
  }

  private async sweep(): Promise<void> {
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

  /** A conversation that fails does not hold up the others; the next sweep tries it again while its sandbox runs. */
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
