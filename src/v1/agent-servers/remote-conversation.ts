import type { ConversationStatus, MetricsSnapshot } from '../../agent-protocol/conversation-info.js';
import { CONVERSATION_STATUSES } from '../../agent-protocol/conversation-statuses.js';
import { jsonAt, jsonNumber, jsonText } from '../../common/json-access.js';

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
