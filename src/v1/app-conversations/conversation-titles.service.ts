import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { conversationTitle, isUserMessage } from '@slipway/agent-protocol/events.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AgentServerClient, isAgentEvent } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { ConversationUpdates } from '../events/store/event-store.js';
import { EventQueries } from '../events/store/event.queries.js';
import { RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { initialTitle, MAX_TITLE_LENGTH } from './conversation.entity.js';
import { ConversationRepository } from './conversation.repository.js';

/** Equals the length of titles that agent servers make. */
const GENERATED_TITLE_LENGTH = 50;

/** Makes titles from first messages, at the agent server or here, until users choose their own. */
@Injectable()
export class ConversationTitlesService implements OnModuleInit {
  private readonly logger = new Logger(ConversationTitlesService.name);

  constructor(
    private readonly updates: ConversationUpdates,
    private readonly conversations: ConversationRepository,
    private readonly events: EventQueries,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
  ) {}

  onModuleInit(): void {
    this.updates.listen((conversationId, { events, state }) => {
      const { title } = state ?? {};
      if (events.some(isUserMessage)) {
        this.inBackground(conversationId, () => this.handleUserMessage(conversationId));
      }
      if (title !== undefined) {
        this.inBackground(conversationId, () => this.rename(conversationId, title));
      }
    });
  }

  private async handleUserMessage(id: string): Promise<void> {
    const conversation = await this.conversations.touch(id);
    // The agent server is asked only once for a title.
    if (
      !conversation ||
      conversation.titleIsUsers ||
      (conversation.title !== null && conversation.title !== initialTitle(id))
    ) {
      return;
    }
    const target = await this.running.target(conversation.sandboxId);
    const suggested = target && (await this.suggestTitle(target, id));
    const title = suggested ?? (await this.titleFromFirstMessage(id));
    if (title === null) {
      return;
    }
    await this.rename(id, title);
    if (target && suggested === null) {
      // Servers that make titles unasked would use a later message.
      await this.agentServers.renameConversation(target, id, title);
    }
  }

  /** Returns null also when the server's model is out of reach. */
  private async suggestTitle(target: AgentServerTarget, id: string): Promise<string | null> {
    try {
      return (await this.agentServers.suggestTitle(target, id))?.trim() || null;
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('failed to get title from agent server', {
        conversation_id: id,
        error: error.message,
      });
      return null;
    }
  }

  private async titleFromFirstMessage(id: string): Promise<string | null> {
    const event = await this.events.firstUserMessage(id);
    return isAgentEvent(event) ? conversationTitle([event], GENERATED_TITLE_LENGTH) : null;
  }

  private async rename(id: string, title: string): Promise<void> {
    const letters = Array.from(title.trim());
    if (letters.length > 0) {
      await this.conversations.setGeneratedTitle(id, letters.slice(0, MAX_TITLE_LENGTH).join(''));
    }
  }

  /** After a failure, the next message triggers another attempt with the first message. */
  private inBackground(conversationId: string, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      this.logger.warn('failed to title conversation', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    });
  }
}
