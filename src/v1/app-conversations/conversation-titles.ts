import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { FollowListeners } from '../events/follow-listeners.js';
import { RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { initialTitle, LONGEST_TITLE } from './conversation-title.js';

/** The user said something: that is when the conversation last changed. */
const TOUCH = `
  UPDATE app_conversations SET updated_at = now() WHERE id = $1
  RETURNING sandbox_id, title, title_is_users`;

/** A title that the user chose meanwhile stays. */
const RENAME = `
  UPDATE app_conversations SET title = $2, updated_at = now()
  WHERE id = $1 AND NOT title_is_users AND title IS DISTINCT FROM $2`;

interface TouchedRow {
  sandbox_id: string;
  title: string | null;
  title_is_users: boolean;
}

/** Gives conversations the titles that agent servers find for them, until users name them. */
@Injectable()
export class ConversationTitles implements OnModuleInit {
  private readonly logger = new Logger(ConversationTitles.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly listeners: FollowListeners,
    private readonly running: RunningSandboxes,
    private readonly agentServers: AgentServerClient,
  ) {}

  onModuleInit(): void {
    this.listeners.onStored((conversationId, events) => {
      if (events.some(isUserMessage)) {
        this.guarded(conversationId, () => this.userSpoke(conversationId));
      }
    });
    this.listeners.onState((conversationId, { title }) => {
      if (typeof title === 'string') {
        this.guarded(conversationId, () => this.rename(conversationId, title));
      }
    });
  }

  private async userSpoke(id: string): Promise<void> {
    const [[row]] = await this.dataSource.query<[TouchedRow[], number]>(TOUCH, [id]);
    // What it is called already may come from the agent server as well: it is asked once.
    if (!row || row.title_is_users || (row.title !== null && row.title !== initialTitle(id))) {
      return;
    }
    const target = await this.running.target(row.sandbox_id);
    const title = target && (await this.agentServers.suggestTitle(target, id));
    if (title) {
      await this.rename(id, title);
    }
  }

  private async rename(id: string, title: string): Promise<void> {
    const letters = Array.from(title.trim());
    if (letters.length > 0) {
      await this.dataSource.query(RENAME, [id, letters.slice(0, LONGEST_TITLE).join('')]);
    }
  }

  /** A title that could not be had comes with the next message. */
  private guarded(conversationId: string, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      this.logger.warn('no title was found', { conversation_id: conversationId, error: String(error) });
    });
  }
}

function isUserMessage(event: AgentEvent): boolean {
  return event.kind === 'MessageEvent' && event.source === 'user';
}
