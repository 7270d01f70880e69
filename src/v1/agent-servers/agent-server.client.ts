import { Injectable } from '@nestjs/common';
import type { EventPage } from '../../agent-protocol/event-page.js';
import type {
  CredentialsRequest,
  SendMessageRequest,
  StartConversationRequest,
} from '../../agent-protocol/start-conversation-request.js';
import { jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { AgentServerError } from './agent-server.error.js';
import { AgentServerHttp } from './agent-server.http.js';
import type { AgentServerTarget } from './agent-server-target.js';
import { isAgentEvent } from './is-agent-event.js';
import { type RemoteConversation, toRemoteConversation } from './remote-conversation.js';

const START_TIMEOUT_MS = 120_000;
const ALIVE_TIMEOUT_MS = 2_000;

/** Whether anything goes on in a sandbox. */
export interface AgentServerActivity {
  /** Seconds since something last ran or a user did something. */
  idleSeconds: number;
  /** A conversation runs right now. */
  running: boolean;
}

/** The one client of agent servers, ours and the stock one. Every method throws AgentServerError when it fails. */
@Injectable()
export class AgentServerClient {
  constructor(private readonly http: AgentServerHttp) {}

  /** Whether it answers. Never throws. */
  async isAlive(address: string): Promise<boolean> {
    try {
      await this.http.text({ address, sessionKey: '' }, '/alive', { timeoutMs: ALIVE_TIMEOUT_MS });
      return true;
    } catch (error) {
      if (error instanceof AgentServerError) {
        return false;
      }
      throw error;
    }
  }

  async activity(target: AgentServerTarget): Promise<AgentServerActivity> {
    const [info, running] = await Promise.all([
      this.http.json(target, '/server_info'),
      this.http.json(target, '/api/conversations/search', { query: { status: 'running', limit: 1 } }),
    ]);
    return {
      idleSeconds: jsonNumber(info, 'idle_time') ?? 0,
      running: jsonList(running, 'items').length > 0,
    };
  }

  /** Get-or-create by `conversation_id`. */
  async startConversation(
    target: AgentServerTarget,
    body: StartConversationRequest,
  ): Promise<RemoteConversation> {
    return required(
      await this.http.json(target, '/api/conversations', {
        method: 'POST',
        body,
        timeoutMs: START_TIMEOUT_MS,
      }),
    );
  }

  /** Null when the server does not know it. */
  async findConversation(
    target: AgentServerTarget,
    id: string,
    signal?: AbortSignal,
  ): Promise<RemoteConversation | null> {
    try {
      return required(await this.http.json(target, conversationPath(id), { ...(signal && { signal }) }));
    } catch (error) {
      if (error instanceof AgentServerError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  async renameConversation(target: AgentServerTarget, id: string, title: string): Promise<void> {
    await this.http.text(target, conversationPath(id), { method: 'PATCH', body: { title } });
  }

  async deleteConversation(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.text(target, conversationPath(id), { method: 'DELETE' });
  }

  /** @throws AgentServerError 409 when it runs already */
  async run(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.text(target, `${conversationPath(id)}/run`, { method: 'POST' });
  }

  async pause(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.text(target, `${conversationPath(id)}/pause`, { method: 'POST' });
  }

  async sendMessage(target: AgentServerTarget, id: string, body: SendMessageRequest): Promise<void> {
    await this.http.text(target, `${conversationPath(id)}/events`, { method: 'POST', body });
  }

  async respondToConfirmation(
    target: AgentServerTarget,
    id: string,
    body: { accept: boolean; reason?: string },
  ): Promise<void> {
    await this.http.text(target, `${conversationPath(id)}/events/respond_to_confirmation`, {
      method: 'POST',
      body,
    });
  }

  /** Gives a conversation back what it lost when its server ended (our server only). */
  async giveCredentials(target: AgentServerTarget, id: string, body: CredentialsRequest): Promise<void> {
    await this.http.text(target, `${conversationPath(id)}/credentials`, { method: 'POST', body });
  }

  /** A title made from what was said; null when the server has none to offer (newer stock servers do it themselves). */
  async suggestTitle(target: AgentServerTarget, id: string): Promise<string | null> {
    try {
      const answer = await this.http.json(target, `${conversationPath(id)}/generate_title`, {
        method: 'POST',
        body: {},
      });
      return jsonText(answer, 'title');
    } catch (error) {
      if (error instanceof AgentServerError && (error.status === 404 || error.status === 405)) {
        return null;
      }
      throw error;
    }
  }

  /**
   * A page of the log, oldest first.
   *
   * @param pageId id of the event that the page begins with (it is the first item)
   */
  async events(
    target: AgentServerTarget,
    id: string,
    { pageId, limit = 100, signal }: { pageId?: string; limit?: number; signal?: AbortSignal },
  ): Promise<EventPage> {
    const answer = await this.http.json(target, `${conversationPath(id)}/events/search`, {
      query: { page_id: pageId, limit, sort_order: 'TIMESTAMP' },
      ...(signal && { signal }),
    });
    return {
      items: jsonList(answer, 'items').filter(isAgentEvent),
      next_page_id: jsonText(answer, 'next_page_id'),
    };
  }
}

function conversationPath(id: string): string {
  return `/api/conversations/${encodeURIComponent(id)}`;
}

function required(value: unknown): RemoteConversation {
  const conversation = toRemoteConversation(value);
  if (!conversation) {
    throw new AgentServerError(null, 'its answer was not a conversation');
  }
  return conversation;
}
