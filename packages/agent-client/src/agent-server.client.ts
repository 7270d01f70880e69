import {
  CONVERSATION_STATUSES,
  COST_SOURCES,
  type ConversationStatus,
  type CredentialsRequest,
  type MetricsSnapshot,
  type SendMessageRequest,
  type StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import type { AgentEvent, EventPage } from '@slipway/agent-protocol/events.js';
import {
  GIT_PREPARE_FAILURES,
  type GitPrepareRequest,
  type GitPrepareResponse,
  type GitPushRequest,
  type GitPushResponse,
} from '@slipway/agent-protocol/git.js';
import { jsonAt, jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { cleanText, textHead } from '@slipway/common/well-formed-text.js';
import { AgentServerError, AgentServerHttp, unlessStatus } from './agent-server.http.js';
import type { AgentServerTarget } from './agent-server.connections.js';

const START_TIMEOUT_MS = 120_000;
const ALIVE_TIMEOUT_MS = 2_000;
/** Covers the start of the agent's program, which may not be running yet. */
const SWITCH_TIMEOUT_MS = 30_000;
const PUSH_TIMEOUT_MS = 150_000;
const PORTS_TIMEOUT_MS = 5_000;
const PORTS_BOUNDS = { bytes: 64 * 1024, values: 1_000 };
/** An agent server answers this long after git's own timeout at the latest. */
const GIT_GRACE_SECONDS = 20;
/** Bounds of a page of events (a single event may hold pictures) or of conversations (with settings and skills). */
const PAGE_BOUNDS = { bytes: 8 * 1024 * 1024, values: 100_000 };

/** They are kept with the start. */
const MAX_NOTICES = 20;
const MAX_NOTICE = 1_000;

/** Agent servers read their clock once for the uptime and once for the idle time. */
const CLOCK_SECONDS = 0.005;

export interface AgentServerActivity {
  /** Seconds since something last ran or a user did something. */
  idleSeconds: number;
  /** Whether nothing has run in it since it started. */
  isUnused: boolean;
  running: boolean;
}

export interface RemoteConversation {
  id: string;
  status: ConversationStatus;
  title: string | null;
  metrics: MetricsSnapshot | null;
  /** The server ended while the agent worked; `run` continues (our server only). */
  wasRunning: boolean;
  /** What an ACP agent says it can do (our server only); null: the agent is our own. */
  abilities: { loadSession: boolean; image: boolean; mcpHttp: boolean; mcpSse: boolean } | null;
}

export interface ConversationPage {
  items: unknown[];
  nextPageId: string | null;
}

/** `unassigned` while the server waits for its session key (ours only). */
export type Liveness = 'assigned' | 'unassigned';

interface EventPageRequest {
  pageId?: string | undefined;
  limit?: number;
  mayExceed?: boolean;
  signal?: AbortSignal | undefined;
}

/** The client of agent servers, ours and the stock one. Every method throws AgentServerError when it fails. */
export class AgentServerClient {
  constructor(private readonly http: AgentServerHttp) {}

  /** Whether the server responds and has its session key. Never throws. */
  async isAlive(address: string): Promise<boolean> {
    return (await this.liveness(address)) === 'assigned';
  }

  /** Returns null when there is no response. Throws no AgentServerError. */
  async liveness(address: string): Promise<Liveness | null> {
    try {
      const target = { address, sessionKey: '' };
      const text = await this.http.text(target, '/alive', { timeoutMs: ALIVE_TIMEOUT_MS, isPoll: true });
      return jsonAt(parseJson(text), 'assigned') === false ? 'unassigned' : 'assigned';
    } catch (error) {
      if (error instanceof AgentServerError) {
        return null;
      }
      throw error;
    }
  }

  async activity(target: AgentServerTarget): Promise<AgentServerActivity> {
    const [info, running] = await Promise.all([
      this.http.json(target, '/server_info'),
      this.http.json(target, '/api/conversations/search', { query: { status: 'running', limit: 1 } }),
    ]);
    const idleSeconds = jsonNumber(info, 'idle_time') ?? 0;
    return {
      idleSeconds,
      isUnused: idleSeconds >= (jsonNumber(info, 'uptime') ?? Infinity) - CLOCK_SECONDS,
      running: jsonList(running, 'items').length > 0,
    };
  }

  /** Get-or-create by `conversation_id`. */
  async startConversation(
    target: AgentServerTarget,
    body: StartConversationRequest,
  ): Promise<RemoteConversation> {
    return requireConversation(
      await this.http.json(target, '/api/conversations', {
        method: 'POST',
        body,
        timeoutMs: START_TIMEOUT_MS,
      }),
    );
  }

  async findConversation(
    target: AgentServerTarget,
    id: string,
    signal?: AbortSignal,
  ): Promise<RemoteConversation | null> {
    const answer = this.http.json(target, conversationPath(id), { signal });
    return await unlessStatus([404], answer.then(requireConversation));
  }

  /** A page, newest first. Throws ResponseTooLargeError, which is a breach only for a page of one entry. */
  async listConversations(
    target: AgentServerTarget,
    { limit, pageId, signal }: { limit: number; pageId: string | null; signal?: AbortSignal | undefined },
  ): Promise<ConversationPage> {
    const page = await this.http.json(target, '/api/conversations/search', {
      query: { limit, sort_order: 'CREATED_AT_DESC', page_id: pageId ?? undefined },
      bounds: PAGE_BOUNDS,
      mayExceed: limit > 1,
      signal,
    });
    return { items: jsonList(page, 'items').slice(0, limit), nextPageId: jsonText(page, 'next_page_id') };
  }

  async uptimeSeconds(target: AgentServerTarget, signal?: AbortSignal): Promise<number> {
    const info = await this.http.json(target, '/server_info', { signal });
    return jsonNumber(info, 'uptime') ?? 0;
  }

  async renameConversation(target: AgentServerTarget, id: string, title: string): Promise<void> {
    await this.http.send(target, conversationPath(id), { method: 'PATCH', body: { title } });
  }

  async deleteConversation(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.send(target, conversationPath(id), { method: 'DELETE' });
  }

  async run(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/run`, { method: 'POST' });
  }

  async pause(target: AgentServerTarget, id: string): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/pause`, { method: 'POST' });
  }

  /** Changes the model of an ACP agent, on our server and newer stock ones. Throws AgentServerError 400 for other agents. */
  async switchAcpModel(target: AgentServerTarget, id: string, model: string): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/switch_acp_model`, {
      method: 'POST',
      body: { model },
      timeoutMs: SWITCH_TIMEOUT_MS,
    });
  }

  /** Switches a conversation to another model (stock servers; ours gets the model with its credentials). */
  async switchLlm(target: AgentServerTarget, id: string, llm: Record<string, unknown>): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/switch_llm`, { method: 'POST', body: { llm } });
  }

  async sendMessage(target: AgentServerTarget, id: string, body: SendMessageRequest): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/events`, { method: 'POST', body });
  }

  async respondToConfirmation(
    target: AgentServerTarget,
    id: string,
    body: { accept: boolean; reason?: string },
  ): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/events/respond_to_confirmation`, {
      method: 'POST',
      body,
    });
  }

  /** Restores the credentials that a conversation lost when its server ended (our server only). */
  async giveCredentials(target: AgentServerTarget, id: string, body: CredentialsRequest): Promise<void> {
    await this.http.send(target, `${conversationPath(id)}/credentials`, { method: 'POST', body });
  }

  /** Makes a folder a repository to work in (our server only); repeatable. Credentials pass only through its memory. */
  async prepareRepository(
    target: AgentServerTarget,
    body: GitPrepareRequest & { timeout: number },
    signal: AbortSignal,
  ): Promise<Pick<GitPrepareResponse, 'ok' | 'failure' | 'output' | 'notices'>> {
    const timeoutMs = (body.timeout + GIT_GRACE_SECONDS) * 1000;
    const call = { method: 'POST', body, timeoutMs, signal } as const;
    const response = await this.http.json(target, '/api/git/prepare', call);
    const ok = jsonAt(response, 'ok');
    if (typeof ok !== 'boolean') {
      throw new AgentServerError(null, 'its response did not say whether git succeeded');
    }
    const failure = GIT_PREPARE_FAILURES.find((known) => known === jsonText(response, 'failure')) ?? 'failed';
    return {
      ok,
      failure: ok ? null : failure,
      output: jsonText(response, 'output') ?? '',
      notices: jsonList(response, 'notices')
        .filter((notice) => typeof notice === 'string')
        .slice(0, MAX_NOTICES)
        .map((notice) => textHead(cleanText(notice), MAX_NOTICE)),
    };
  }

  /** Those of the named ports at which something listens; null from an agent server that cannot tell: the stock one. */
  async listeningPorts(target: AgentServerTarget, names: readonly string[]): Promise<string[] | null> {
    const call = { query: { names: names.join() }, timeoutMs: PORTS_TIMEOUT_MS, bounds: PORTS_BOUNDS };
    const response = await unlessStatus([404, 405], this.http.json(target, '/api/ports', call));
    const listening = response === null ? null : jsonList(response, 'listening');
    return listening && names.filter((name) => listening.includes(name));
  }

  /** Returns null if the agent server cannot push, as the stock one. */
  async push(target: AgentServerTarget, body: GitPushRequest): Promise<GitPushResponse | null> {
    const call = { method: 'POST', body, timeoutMs: PUSH_TIMEOUT_MS } as const;
    const response = await unlessStatus([404, 405], this.http.json(target, '/api/git/push', call));
    return response === null
      ? null
      : {
          ok: jsonAt(response, 'ok') === true,
          branch: jsonText(response, 'branch'),
          denied: jsonAt(response, 'denied') === true,
          output: jsonText(response, 'output') ?? '',
        };
  }

  /** A title generated from the messages; null when the server offers none, as newer stock servers do. */
  async suggestTitle(target: AgentServerTarget, id: string): Promise<string | null> {
    const path = `${conversationPath(id)}/generate_title`;
    const call = { method: 'POST', body: {} } as const;
    return jsonText(await unlessStatus([404, 405], this.http.json(target, path, call)), 'title');
  }

  async lastEventId(target: AgentServerTarget, id: string): Promise<string | null> {
    const response = await this.http.json(target, `${conversationPath(id)}/events/search`, {
      query: { limit: 1, sort_order: 'TIMESTAMP_DESC' },
      bounds: PAGE_BOUNDS,
    });
    return jsonText(jsonList(response, 'items')[0], 'id');
  }

  /** A page of the log from `pageId`, oldest first. Throws ResponseTooLargeError: no breach if it `mayExceed`. */
  async events(
    target: AgentServerTarget,
    id: string,
    { pageId, limit = 100, mayExceed = false, signal }: EventPageRequest,
  ): Promise<EventPage> {
    const response = await this.http.json(target, `${conversationPath(id)}/events/search`, {
      query: { page_id: pageId, limit, sort_order: 'TIMESTAMP' },
      bounds: PAGE_BOUNDS,
      mayExceed,
      signal,
    });
    return {
      items: jsonList(response, 'items').filter(isAgentEvent),
      next_page_id: jsonText(response, 'next_page_id'),
    };
  }
}

function conversationPath(id: string): string {
  return `/api/conversations/${encodeURIComponent(id)}`;
}

function requireConversation(value: unknown): RemoteConversation {
  const conversation = toRemoteConversation(value);
  if (!conversation) {
    throw new AgentServerError(null, 'its response was not a conversation');
  }
  return conversation;
}

/** Checks only id, kind and time; everything else is passed on, including what newer servers add. */
export function isAgentEvent(value: unknown): value is AgentEvent {
  const timestamp = jsonText(value, 'timestamp');
  return (
    jsonText(value, 'id') !== null &&
    jsonText(value, 'kind') !== null &&
    timestamp !== null &&
    !Number.isNaN(Date.parse(timestamp))
  );
}

/** Returns null unless it is a `ConversationInfo` with the members that are used. */
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
    metrics:
      toMetrics(jsonAt(value, 'metrics')) ?? toMetrics(jsonAt(value, 'stats', 'usage_to_metrics', 'agent')),
    wasRunning: jsonAt(value, 'agent_state', 'was_running') === true,
    abilities: toAbilities(jsonAt(value, 'agent_state', 'acp_capabilities')),
  };
}

function toAbilities(value: unknown): RemoteConversation['abilities'] {
  return value === undefined
    ? null
    : {
        loadSession: jsonAt(value, 'load_session') === true,
        image: jsonAt(value, 'image') === true,
        mcpHttp: jsonAt(value, 'mcp_http') === true,
        mcpSse: jsonAt(value, 'mcp_sse') === true,
      };
}

/** Reads metrics from a response or a `stats` event; null when they are not metrics. */
export function toMetrics(value: unknown): MetricsSnapshot | null {
  const modelName = jsonText(value, 'model_name');
  if (modelName === null) {
    return null;
  }
  const usage = jsonAt(value, 'accumulated_token_usage');
  const count = (name: string): number => jsonNumber(usage, name) ?? 0;
  const cost = jsonNumber(value, 'accumulated_cost') ?? 0;
  const given = jsonText(value, 'cost_source');
  return {
    model_name: modelName,
    accumulated_cost: cost,
    cost_source: COST_SOURCES.find((source) => source === given) ?? (cost > 0 ? 'catalogue' : 'unknown'),
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
