import path from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import pLimit from 'p-limit';
import { hasFailed } from '@slipway/agent-protocol/conversation-api.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { ConversationUpdates } from '../../events/store/event-store.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import type { AppConversation } from '../conversation.entity.js';
import { ConversationRepository } from '../conversation.repository.js';
import { ChangesReader } from './changes.reader.js';
import { KeptChangesRepository } from './kept-changes.repository.js';

/** A stop waits for at most ten seconds. */
const STOP_MS = 8_000;
const RUN_MS = 30_000;
/** Conversations whose changes are read at a time. */
const MAX_READS = 8;

/** Keeps what an agent changed, so that it can be seen while its sandbox does not run. */
@Injectable()
export class ChangesKeeper implements OnModuleInit {
  private readonly logger = new Logger(ChangesKeeper.name);
  private readonly limit = pLimit(MAX_READS);
  /** Copies under way; true: its run has ended once more. */
  private readonly copying = new Map<string, boolean>();

  constructor(
    private readonly updates: ConversationUpdates,
    private readonly sandboxes: SandboxEvents,
    private readonly running: RunningSandboxQueries,
    private readonly conversations: ConversationRepository,
    private readonly reader: ChangesReader,
    private readonly kept: KeptChangesRepository,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    this.updates.listen((id, { state }) => {
      const status = state?.executionStatus;
      if (status === 'finished' || status === 'paused' || hasFailed(status ?? null)) {
        this.copyLater(id);
      }
    });
    this.sandboxes.on('stopping', async (sandboxId) => {
      const [target, conversations] = await Promise.all([
        this.running.lastTarget(sandboxId),
        this.conversations.inSandbox(sandboxId),
      ]);
      const signal = AbortSignal.timeout(STOP_MS);
      await Promise.all(target === null ? [] : conversations.map((each) => this.copy(target, each, signal)));
    });
  }

  private copyLater(id: string): void {
    if (this.copying.has(id)) {
      this.copying.set(id, true);
      return;
    }
    this.copying.set(id, false);
    this.limit(() => this.copyRunning(id))
      .catch((error: unknown) => this.report(id, error))
      .finally(() => {
        const isDue = this.copying.get(id) === true;
        this.copying.delete(id);
        if (isDue) {
          this.copyLater(id);
        }
      });
  }

  private async copyRunning(id: string): Promise<void> {
    const conversation = await this.conversations.byId(id);
    const target = conversation && (await this.running.target(conversation.sandboxId));
    if (conversation !== null && target !== null) {
      await this.copy(target, conversation, AbortSignal.timeout(RUN_MS));
    }
  }

  /** An earlier copy stays where the agent server does not tell. */
  private async copy(
    target: RunningSandbox,
    { id, workingDir }: Pick<AppConversation, 'id' | 'workingDir'>,
    signal: AbortSignal,
  ): Promise<void> {
    const asOf = new Date(this.clock.now());
    try {
      const changes = await this.reader.read(target, path.posix.resolve('/', workingDir), signal);
      await this.kept.keep(id, asOf, changes);
    } catch (error) {
      if (!(error instanceof AgentServerError) && !signal.aborted) {
        throw error;
      }
      this.report(id, error);
    }
  }

  private report(id: string, error: unknown): void {
    this.logger.warn('failed to keep the changes of a conversation', {
      conversation_id: id,
      error: errorMessage(error),
    });
  }
}
