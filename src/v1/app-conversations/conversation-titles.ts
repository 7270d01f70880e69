import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { conversationTitle } from '../../agent-protocol/conversation-title.js';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { AgentServerClient, isAgentEvent } from '../agent-servers/agent-server.client.js';
import { AgentServerError, type AgentServerTarget } from '../agent-servers/agent-server.http.js';
import { ConversationEvents } from '../events/event-listeners.js';
import { RunningSandboxes } from '../sandboxes/sandbox.queries.js';
import { initialTitle, LONGEST_TITLE } from './conversation.entity.js';

/** The user said something: that is when the conversation last changed. */
const TOUCH = `
  UPDATE app_conversations SET updated_at = now() WHERE id = $1
  RETURNING sandbox_id, title, title_is_users`;

/** A title that the user chose meanwhile stays. */
const RENAME = `
  UPDATE app_conversations SET title = $2, updated_at = now()
  WHERE id = $1 AND NOT title_is_users AND title IS DISTINCT FROM $2`;

const FIRST_MESSAGE = `
  SELECT body FROM conversation_events
  WHERE conversation_id = $1 AND kind = 'MessageEvent' AND body->>'source' = 'user'
  ORDER BY seq LIMIT 1`;

/** As long as those that agent servers make. */
const SHORT_TITLE = 50;

interface TouchedRow {
  sandbox_id: string;
  title: string | null;
  title_is_users: boolean;
}

/** Gives conversations titles made of their first message, by the agent server or here, until users name them. */
@Injectable()
export class ConversationTitles implements OnModuleInit {
  private readonly logger = new Logger(ConversationTitles.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly listeners: ConversationEvents,
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
    const suggested = target && (await this.suggestion(target, id));
    const title = suggested ?? (await this.firstWords(id));
    if (title === null) {
      return;
    }
    await this.rename(id, title);
    if (target && suggested === null) {
      // A server that makes titles without being asked would make one of a later message.
      await this.agentServers.renameConversation(target, id, title);
    }
  }

  /** Null also when the server cannot make one: its model may be out of reach. */
  private async suggestion(target: AgentServerTarget, id: string): Promise<string | null> {
    try {
      return (await this.agentServers.suggestTitle(target, id))?.trim() || null;
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('an agent server made no title', { conversation_id: id, error: error.message });
      return null;
    }
  }

  private async firstWords(id: string): Promise<string | null> {
    const [row] = await this.dataSource.query<{ body: unknown }[]>(FIRST_MESSAGE, [id]);
    const event = row?.body;
    return isAgentEvent(event) ? conversationTitle([event], SHORT_TITLE) : null;
  }

  private async rename(id: string, title: string): Promise<void> {
    const letters = Array.from(title.trim());
    if (letters.length > 0) {
      await this.dataSource.query(RENAME, [id, letters.slice(0, LONGEST_TITLE).join('')]);
    }
  }

  /** A title that could not be had comes with the next message; it is made of the first one then as well. */
  private guarded(conversationId: string, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      this.logger.warn('no title was found', { conversation_id: conversationId, error: String(error) });
    });
  }
}

function isUserMessage(event: AgentEvent): boolean {
  return event.kind === 'MessageEvent' && event.source === 'user';
}
