import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { SandboxListeners } from '../../sandboxes/sandbox-listeners.js';
import { ConversationRevival } from './conversation-revival.js';
import { type RestorableConversation, RestorableConversations } from './restorable-conversations.js';

/** For what was missed: another process started the sandbox and died, or the agent server was not ready. */
const SWEEP_MS = 5_000;

/**
 * Gives conversations back what they lost when their agent servers were started anew, and has those go on that were
 * running: at once for sandboxes that this process started, and by a sweep for all of this host.
 */
@Injectable()
export class ConversationRestore implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(ConversationRestore.name);
  private readonly working = new Map<string, Promise<void>>();
  private timer: NodeJS.Timeout | null = null;
  private stopping = false;

  constructor(
    private readonly listeners: SandboxListeners,
    private readonly host: HostIdentity,
    private readonly conversations: RestorableConversations,
    private readonly revival: ConversationRevival,
  ) {}

  onModuleInit(): void {
    // Not waited for: the service begins to listen, and other sandboxes to run, while an agent server hangs.
    this.listeners.onRunning((sandboxId) => void this.restore(sandboxId));
  }

  onApplicationBootstrap(): void {
    this.schedule();
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    if (this.timer) {
      clearTimeout(this.timer);
    }
    await Promise.all(this.working.values());
  }

  /** Restores what waits for it in one sandbox. Whoever asks meanwhile waits for the same work. */
  restore(sandboxId: string): Promise<void> {
    const known = this.working.get(sandboxId);
    if (known || this.stopping) {
      return known ?? Promise.resolve();
    }
    const work = this.restoreAll(sandboxId).finally(() => this.working.delete(sandboxId));
    this.working.set(sandboxId, work);
    return work;
  }

  /** Restores what waits for it in the sandboxes of this host. */
  async sweep(): Promise<void> {
    const sandboxIds = await this.conversations.sandboxes(this.host.id);
    await Promise.all(sandboxIds.map((id) => this.restore(id)));
  }

  private schedule(): void {
    this.timer = setTimeout(() => {
      this.sweep()
        .catch((error: unknown) => {
          this.logger.warn('conversations were not looked for', { error: String(error) });
        })
        .finally(() => {
          if (!this.stopping) {
            this.schedule();
          }
        });
    }, SWEEP_MS).unref();
  }

  private async restoreAll(sandboxId: string): Promise<void> {
    try {
      for (const conversation of await this.conversations.of(sandboxId)) {
        if (this.stopping) {
          return;
        }
        await this.reviveOne(conversation);
      }
    } catch (error) {
      this.logger.warn('conversations were not restored', {
        sandbox_id: sandboxId,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** One that cannot be restored keeps none of the others waiting. */
  private async reviveOne(conversation: RestorableConversation): Promise<void> {
    try {
      await this.revival.revive(conversation);
    } catch (error) {
      // The next sweep tries again, as long as the sandbox runs.
      this.logger.warn('a conversation was not restored', {
        conversation_id: conversation.id,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }
}
