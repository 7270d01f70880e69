import { Injectable } from '@nestjs/common';
import {
  CONVERSATION_STATUSES,
  type ConversationStatus,
  type CredentialsRequest,
  type MetricsSnapshot,
  type SendMessageRequest,
  type StartConversationRequest,
} from '../../agent-protocol/conversation.js';
import type { AgentEvent, EventPage } from '../../agent-protocol/events.js';
import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { AgentServerError, AgentServerHttp, type AgentServerTarget } from './agent-server.http.js';

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

/** An event has at least an id, a kind and a time; the rest is passed on as it is, whatever a newer server adds. */
export function isAgentEvent(value: unknown): value is AgentEvent {
  const timestamp = jsonText(value, 'timestamp');
  return (
    jsonText(value, 'id') !== null &&
    jsonText(value, 'kind') !== null &&
    timestamp !== null &&
    !Number.isNaN(Date.parse(timestamp))
  );
}

/** A conversation as its agent server tells it, reduced to what the service uses. */
export interface RemoteConversation {
  /** UUID as the server writes it. */
  id: string;
  status: ConversationStatus;
  title: string | null;
  /** Without an address: the provider's own. */
  model: { model: string | null; baseUrl: string | null };
  metrics: MetricsSnapshot | null;
  /** The server ended while the agent worked, and `run` goes on (our server only). */
  wasRunning: boolean;
}

/** Reads a `ConversationInfo`; null when it is none. Nothing but what is used has to be there. */
export function toRemoteConversation(value: unknown): RemoteConversation | null {
  const id = jsonText(value, 'id');
  const given = jsonText(value, 'execution_status');
  const status = CONVERSATION_STATUSES.find((known) => known === given);
  if (id === null || status === undefined) {
    return null;
  }
  return {
    id,
    status,
    title: jsonText(value, 'title'),
    model: {
      model: jsonText(value, 'agent', 'llm', 'model'),
      baseUrl: jsonText(value, 'agent', 'llm', 'base_url'),
    },
    metrics:
      toMetrics(jsonAt(value, 'metrics')) ?? toMetrics(jsonAt(value, 'stats', 'usage_to_metrics', 'agent')),
    wasRunning: jsonAt(value, 'agent_state', 'was_running') === true,
  };
}

/** Metrics of a conversation from an answer or a `stats` event; null when they are none. */
export function toMetrics(value: unknown): MetricsSnapshot | null {
  const modelName = jsonText(value, 'model_name');
  if (modelName === null) {
    return null;
  }
  const usage = jsonAt(value, 'accumulated_token_usage');
  const count = (name: string): number => jsonNumber(usage, name) ?? 0;
  return {
    model_name: modelName,
    accumulated_cost: jsonNumber(value, 'accumulated_cost') ?? 0,
    max_budget_per_task: jsonNumber(value, 'max_budget_per_task'),
    accumulated_token_usage:
      typeof usage === 'object' && usage !== null
        ? {
            model: jsonText(usage, 'model') ?? modelName,
            prompt_tokens: count('prompt_tokens'),
            completion_tokens: count('completion_tokens'),
            cache_read_tokens: count('cache_read_tokens'),
            cache_write_tokens: count('cache_write_tokens'),
            reasoning_tokens: count('reasoning_tokens'),
            context_window: count('context_window'),
            per_turn_token: count('per_turn_token'),
            response_id: jsonText(usage, 'response_id') ?? '',
          }
        : null,
  };
}
