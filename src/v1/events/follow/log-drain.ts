import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { FollowedConversationRepository } from '../followed-conversation.repository.js';
import { LogSync } from './log-sync.js';

/** The sandbox stops after this, whether everything could be read or not. */
const DRAIN_TIMEOUT_MS = 5_000;

/** Reads the rest of the logs of a sandbox before its agent server stops. */
@Injectable()
export class LogDrain implements OnModuleInit {
  private readonly logger = new Logger(LogDrain.name);

  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxEvents,
    private readonly sync: LogSync,
  ) {}

  onModuleInit(): void {
    this.sandboxes.on('stopping', (sandboxId) => this.drain(sandboxId));
  }

  /** Call while the agent server still responds (`RunningSandboxQueries.lastTarget`). */
  async drain(sandboxId: string): Promise<void> {
    const conversationIds = await this.conversations.idsInSandbox(sandboxId);
    const target = conversationIds.length === 0 ? null : await this.running.lastTarget(sandboxId);
    if (target) {
      const signal = AbortSignal.timeout(DRAIN_TIMEOUT_MS);
      await Promise.all(conversationIds.map((id) => this.drainConversation(target, id, signal)));
    }
  }

  private async drainConversation(
    target: AgentServerTarget,
    conversationId: string,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      if ((await this.sync.syncEvents(target, conversationId, signal)) !== 'removed') {
        await this.sync.syncState(target, conversationId, signal);
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('failed to read the end of a conversation log', {
        conversation_id: conversationId,
        error: error.message,
      });
    }
  }
}
