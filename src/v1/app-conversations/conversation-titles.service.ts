import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { conversationTitle } from '@slipway/agent-protocol/conversation-title.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AgentServerClient, isAgentEvent } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../agent-servers/sandbox-address.js';
import { ConversationUpdates } from '../events/conversation-updates.js';
import { EventQueries } from '../events/store/event.queries.js';
import { RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { initialTitle, MAX_TITLE_LENGTH } from './conversation.entity.js';
import { ConversationRepository } from './conversation.repository.js';

/** As long as the titles that agent servers generate. */
const GENERATED_TITLE_LENGTH = 50;

/** Gives conversations titles made from their first message, by the agent server or here, until their users name them. */
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
    this.updates.onStored((conversationId, events) => {
      if (events.some(isUserMessage)) {
        this.inBackground(conversationId, () => this.handleUserMessage(conversationId));
      }
    });
    this.updates.onState((conversationId, { title }) => {
      if (typeof title === 'string') {
        this.inBackground(conversationId, () => this.rename(conversationId, title));
      }
    });
  }

  private async handleUserMessage(id: string): Promise<void> {
    const conversation = await this.conversations.touch(id);
    // A title may also come from the agent server, which is asked only once.
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
      // A server that makes titles without being asked would make one from a later message.
      await this.agentServers.renameConversation(target, id, title);
    }
  }

  /** Null also when the server cannot make a title: its model may be out of reach. */
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

  /** After a failure the next message is another occasion; the title is then made from the first one as well. */
  private inBackground(conversationId: string, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      this.logger.warn('failed to title conversation', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    });
  }
}

function isUserMessage(event: AgentEvent): boolean {
  return event.kind === 'MessageEvent' && event.source === 'user';
}
