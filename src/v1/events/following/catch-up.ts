import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../../database/named-statement.js';
import { AgentServerError } from '../../agent-servers/agent-server.error.js';
import type { AgentServerTarget } from '../../agent-servers/agent-server-target.js';
import { RunningSandboxes } from '../../sandboxes/running-sandboxes.js';
import { SandboxListeners } from '../../sandboxes/sandbox-listeners.js';
import { LogSync } from './log-sync.js';

/** A sandbox that is stopped is stopped, whether all could be read or not. */
const PATIENCE_MS = 5_000;

/** Reads what is still unread of conversations before their agent server ends. */
@Injectable()
export class CatchUp implements OnModuleInit {
  private readonly logger = new Logger(CatchUp.name);
  private readonly inSandbox = new NamedStatement<{ id: string }>(
    'followed_conversations_of_sandbox',
    'SELECT id FROM followed_conversations WHERE sandbox_id = $1',
  );
  private readonly sandboxOf = new NamedStatement<{ sandbox_id: string }>(
    'followed_conversation_sandbox',
    'SELECT sandbox_id FROM followed_conversations WHERE id = $1',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly running: RunningSandboxes,
    private readonly sandboxes: SandboxListeners,
    private readonly sync: LogSync,
  ) {}

  onModuleInit(): void {
    this.sandboxes.beforePause((sandboxId) => this.catchUpSandbox(sandboxId));
  }

  /** Stores what a conversation's agent server has written so far, within 5 s. Nothing when none can be reached. */
  async catchUp(conversationId: string): Promise<void> {
    const [row] = await this.sandboxOf.run(this.dataSource, [conversationId]);
    const target = row ? await this.running.lastTarget(row.sandbox_id) : null;
    if (target) {
      await this.read(target, conversationId, AbortSignal.timeout(PATIENCE_MS));
    }
  }

  private async catchUpSandbox(sandboxId: string): Promise<void> {
    const conversations = await this.inSandbox.run(this.dataSource, [sandboxId]);
    const target = conversations.length === 0 ? null : await this.running.lastTarget(sandboxId);
    if (target) {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      await Promise.all(conversations.map(({ id }) => this.read(target, id, signal)));
    }
  }

  private async read(target: AgentServerTarget, conversationId: string, signal: AbortSignal): Promise<void> {
    try {
      if ((await this.sync.events(target, conversationId, signal)) !== 'gone') {
        await this.sync.state(target, conversationId, signal);
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('the end of a log could not be read', { conversationId, error: error.message });
    }
  }
}
