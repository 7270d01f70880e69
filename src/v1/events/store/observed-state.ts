import {
  type ConversationFailure,
  type ConversationStatus,
  hasFailed,
  type MetricsSnapshot,
} from '@slipway/agent-protocol/conversation-api.js';
import type { ActionEvent, AgentEvent } from '@slipway/agent-protocol/events.js';
import { jsonAt, jsonText, parseJson } from '@slipway/common/json-access.js';
import {
  type RemoteConversation,
  toMetrics,
  toRemoteConversation,
} from '@slipway/agent-client/agent-server.client.js';
import { storableJson, storableText } from './storable-event.js';

/** Bounds names of errors, which may quote a provider. */
const MAX_CODE_LENGTH = 100;
const MAX_DETAIL_LENGTH = 2_000;

/** Members that were not observed are absent. */
export interface ObservedState {
  executionStatus?: ConversationStatus;
  /** Its agent has worked, whatever its status is by now. */
  hasRun?: true;
  /** Null: the earlier error is over. */
  error?: ConversationFailure | null;
  metrics?: MetricsSnapshot;
  title?: string;
  result?: unknown;
}

/** What events say about the state; the last event wins. */
export function stateInEvents(events: readonly AgentEvent[]): ObservedState {
  return Object.assign({}, ...events.map(stateInEvent)) as ObservedState;
}

function stateInEvent(event: AgentEvent): ObservedState {
  if (event.kind === 'ActionEvent') {
    return resultOf(event);
  }
  if (event.kind === 'ConversationErrorEvent') {
    return {
      error: {
        code: cutText(event.code, MAX_CODE_LENGTH),
        detail: cutText(event.detail, MAX_DETAIL_LENGTH),
      },
    };
  }
  if (event.kind !== 'ConversationStateUpdateEvent') {
    return {};
  }
  switch (event.key) {
    case 'execution_status':
      return stateOf(toRemoteConversation({ id: event.id, execution_status: event.value }));
    case 'stats': {
      const metrics = toMetrics(jsonAt(event.value, 'usage_to_metrics', 'agent'));
      return metrics ? { metrics: storableJson(metrics) } : {};
    }
    case 'full_state':
      return stateOf(toRemoteConversation({ id: event.id, ...asObject(event.value) }));
    default:
      return {};
  }
}

/** The result is an argument of a valid call of `finish`; calls that were refused have no action. */
function resultOf(event: ActionEvent): ObservedState {
  if (event.tool_name !== 'finish' || event.action?.kind !== 'FinishAction') {
    return {};
  }
  const result = jsonAt(parseJson(jsonText(event, 'tool_call', 'arguments') ?? ''), 'result');
  return result === undefined ? {} : { result: storableJson(result) };
}

export function stateOf(remote: RemoteConversation | null): ObservedState {
  return {
    ...(remote && { executionStatus: remote.status, ...(!hasFailed(remote.status) && { error: null }) }),
    ...(remote?.status === 'running' && { hasRun: true }),
    ...(remote?.metrics && { metrics: storableJson(remote.metrics) }),
    ...(remote?.title !== undefined && remote.title !== null && { title: storableText(remote.title) }),
  };
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** Untrusted, so it need not be a text. */
function cutText(value: unknown, most: number): string {
  const text = storableText(typeof value === 'string' ? value : '');
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
