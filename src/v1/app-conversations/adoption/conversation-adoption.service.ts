import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import pLimit from 'p-limit';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { LogSync } from '../../events/log-sync/log-sync.js';
import { SandboxLifecycleRepository } from '../../sandboxes/sandbox-lifecycle.repository.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { ConversationAdopter, type Extent } from './conversation.adopter.js';

/** Before the sandbox stops; what is missed is read after its next start. */
const LAST_READ_MS = 2_000;
const SWEEP_MS = 60_000;
const MAX_SANDBOXES_AT_ONCE = 4;

/**
 * Decides when to look for conversations to adopt: webhooks about unknown ones trigger it; start and end of the sandbox and
 * a sweep find what was missed.
 */
@Injectable()
export class ConversationAdoptionService extends BackgroundLoop implements OnModuleInit {
  private readonly turns = new KeyedLimit(1);
  private readonly sweepLimit = pLimit(MAX_SANDBOXES_AT_ONCE);

  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly sandboxEvents: SandboxEvents,
    private readonly logs: LogSync,
    private readonly adopter: ConversationAdopter,
  ) {
    const logger = new Logger(ConversationAdoptionService.name);
    super(SWEEP_MS, logger, 'failed to find conversations to adopt', 'warn');
  }

  onModuleInit(): void {
    this.sandboxEvents.on('running', (sandboxId) => this.inBackground(sandboxId, 'all'));
    this.sandboxEvents.on('stopping', (sandboxId) => this.adoptLast(sandboxId));
  }

  /** Returns at once; requests during the work cause one more look. */
  request(sandboxId: string): void {
    if (this.turns.waiting(sandboxId) === 0) {
      this.inBackground(sandboxId, 'news');
    }
  }

  protected async work(): Promise<void> {
    const ids = await this.lifecycle.runningIds();
    await Promise.all(ids.map((id) => this.sweepLimit(() => this.tryAdopt(id, 'news'))));
  }

  private inBackground(sandboxId: string, extent: Extent): void {
    if (!this.stopping) {
      this.beside(this.tryAdopt(sandboxId, extent));
    }
  }

  private async tryAdopt(sandboxId: string, extent: Extent): Promise<void> {
    try {
      await this.turns.run(sandboxId, async () => {
        const target = this.stopping ? null : await this.running.target(sandboxId);
        await (target && this.adopter.adopt(target, extent));
      });
    } catch (error) {
      this.logFailure(sandboxId, error);
    }
  }

  private logFailure(sandboxId: string, error: unknown): void {
    this.logger.warn('failed to adopt conversations', { sandbox_id: sandboxId, error: errorMessage(error) });
  }

  /** Runs before the agent server ends; conversations adopted now are read at once. */
  private async adoptLast(sandboxId: string): Promise<void> {
    const target = await this.running.lastTarget(sandboxId);
    if (target === null) {
      return;
    }
    try {
      if ((await this.adopter.adopt(target, 'news', AbortSignal.timeout(LAST_READ_MS))) > 0) {
        await this.logs.drain(sandboxId);
      }
    } catch (error) {
      this.logFailure(sandboxId, error);
    }
  }
}
