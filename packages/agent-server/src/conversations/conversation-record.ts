import type {
  ConfirmationPolicy,
  SecurityAnalyzer,
  ConversationInfo,
  MetricsSnapshot,
  CostSource,
} from '@slipway/agent-protocol/conversation-api.js';
import type {
  CredentialsUpdate,
  ForkRequest,
  CreateConversationRequest,
  ModelPrice,
} from '@slipway/agent-protocol/conversation-schemas.js';
import type { AgentDetails, AgentKind, EngineMemory, ExecutionStatus } from '../engine/agent-engine.js';
import { redactAgent } from '../secret-masker.js';
import { jsonText, isJsonObject } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import type { EventLog } from '../event-log.js';

/**
 * What a conversation stores besides its events; it holds no secret. Tools may be able to change it on disk, so
 * nothing in it decides where a secret is sent (see `Credentials`).
 */
export interface ConversationRecord {
  id: string;
  /** ISO 8601 with zone. */
  createdAt: string;
  updatedAt: string;
  title: string | null;
  status: ExecutionStatus;
  /** The server stopped while the agent was running. */
  wasRunning: boolean;
  /** The status after a condensation, which is no run to go on with; absent in records of earlier versions. */
  rest?: ExecutionStatus | null;
  kind: AgentKind;
  memory: EngineMemory;
  agentDetails: AgentDetails | null;
  /** The agent as the client sent it, with secrets masked. */
  agent: Record<string, unknown>;
  /** The model's name is for display. */
  llm: { model: string; timeoutMs: number; usageId: string };
  /** The client once gave a key, so calling the model without one is pointless. */
  llmKeyNeeded: boolean;
  workingDir: string;
  maxIterations: number;
  maxBudget: number | null;
  /** Part of `maxBudget` that conversations started by the agent may spend; absent in records of earlier versions. */
  delegatedBudget?: number;
  stuckDetection: boolean;
  confirmationPolicy: ConfirmationPolicy;
  securityAnalyzer: SecurityAnalyzer | null;
  condenserTokens: number | null;
  language: string | null;
  systemPromptSuffix: string | null;
  activatedSkills: string[];
  /** Folders of plugins; absent in records of earlier versions. */
  plugins?: string[];
  tags: Record<string, string>;
  navigations: Navigation[];
  modelPrices: Record<string, ModelPrice>;
  /** JSON Schema of the result; absent in records of earlier versions. */
  resultSchema?: Record<string, unknown> | null;
  secrets: Record<string, { kind: string; description: string | null }>;
  usage: {
    iterations: number;
    promptTokens: number;
    completionTokens: number;
    costUsd: number;
    /** Absent before anything was used, and in records of earlier versions. */
    costSource?: CostSource;
  };
}

const DEFAULT_LLM_TIMEOUT_SECONDS = 120;
const DEFAULT_CONDENSER_TOKENS = 96_000;
const NO_USAGE: ConversationRecord['usage'] = {
  iterations: 0,
  promptTokens: 0,
  completionTokens: 0,
  costUsd: 0,
};
const TOKENS_PER_PRICE = 1_000_000;
/** Our tools that the SDK keeps in a package of their own. */
const SDK_TOOLS = new Set(['terminal', 'file_editor', 'task_tracker']);

export function newRecord(
  id: string,
  workingDir: string,
  request: CreateConversationRequest,
): ConversationRecord {
  const { agent, slipway } = request;
  const now = new Date().toISOString();
  return {
    id,
    createdAt: now,
    updatedAt: now,
    title: null,
    status: 'idle',
    wasRunning: false,
    kind: agent.kind === 'ACPAgent' ? 'acp' : 'native',
    memory: {},
    agentDetails: null,
    agent: redactAgent(agent),
    llm: {
      model: agent.llm.model,
      timeoutMs: (agent.llm.timeout ?? DEFAULT_LLM_TIMEOUT_SECONDS) * 1000,
      usageId: agent.llm.usage_id,
    },
    llmKeyNeeded: Boolean(agent.llm.api_key),
    workingDir,
    maxIterations: request.max_iterations,
    maxBudget: slipway.max_budget ?? null,
    stuckDetection: request.stuck_detection,
    confirmationPolicy: request.confirmation_policy,
    securityAnalyzer: request.security_analyzer ?? null,
    condenserTokens: condenserTokens(agent.condenser),
    language: slipway.language ?? null,
    systemPromptSuffix: agent.agent_context?.system_message_suffix ?? null,
    activatedSkills: [],
    tags: request.tags ?? {},
    navigations: [],
    modelPrices: modelPrices(request),
    resultSchema: slipway.result_schema ?? null,
    secrets: describeSecrets(request.secrets),
    usage: NO_USAGE,
  };
}

export function forkedRecord(
  source: ConversationRecord,
  fork: ForkRequest & { id: string },
): ConversationRecord {
  const now = new Date().toISOString();
  return {
    ...source,
    id: fork.id,
    createdAt: now,
    updatedAt: now,
    title: fork.title ?? null,
    tags: fork.tags ?? {},
    status: 'idle',
    wasRunning: false,
    navigations: [],
    delegatedBudget: 0,
    usage: fork.reset_metrics ? NO_USAGE : source.usage,
  };
}

/** The part of an update that the record keeps: nothing secret, and only members that were given. */
export function recordUpdate(
  {
    agent,
    llm,
    llmKeyNeeded,
    secrets,
  }: Pick<ConversationRecord, 'agent' | 'llm' | 'llmKeyNeeded' | 'secrets'>,
  update: CredentialsUpdate,
): Partial<ConversationRecord> {
  // A withheld key changes nothing: the model is still not called without one.
  const keyUnchanged = update.llm_api_key === undefined || update.llm_key_withheld === true;
  return {
    llmKeyNeeded: keyUnchanged ? llmKeyNeeded : Boolean(update.llm_api_key),
    secrets: { ...secrets, ...describeSecrets(update.secrets ?? {}) },
    ...(update.language !== undefined && { language: update.language }),
    ...(update.llm_model !== undefined && {
      llm: { ...llm, model: update.llm_model },
      agent: withModel(agent, update.llm_model),
    }),
    ...(update.max_budget !== undefined && { maxBudget: update.max_budget }),
    ...(update.delegated_budget !== undefined && { delegatedBudget: update.delegated_budget }),
    ...(update.model_prices !== undefined && { modelPrices: update.model_prices }),
    ...(update.max_iterations !== undefined && { maxIterations: update.max_iterations }),
  };
}

function withModel(agent: ConversationRecord['agent'], model: string): ConversationRecord['agent'] {
  const { llm } = agent;
  return isJsonObject(llm) ? { ...agent, llm: { ...llm, model } } : agent;
}

function describeSecrets(secrets: CreateConversationRequest['secrets']): ConversationRecord['secrets'] {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, source]) => [
      name,
      {
        kind: source.kind,
        description: 'description' in source ? (source.description ?? null) : null,
      },
    ]),
  );
}

function condenserTokens(condenser: CreateConversationRequest['agent']['condenser']): number | null {
  const condenses = condenser && condenser.kind !== 'NoOpCondenser';
  return condenses ? (condenser.max_tokens ?? DEFAULT_CONDENSER_TOKENS) : null;
}

function modelPrices({ agent, slipway }: CreateConversationRequest): ConversationRecord['modelPrices'] {
  const { model, input_cost_per_token: input, output_cost_per_token: output } = agent.llm;
  const own =
    typeof input === 'number' && typeof output === 'number'
      ? { [model]: { input: input * TOKENS_PER_PRICE, output: output * TOKENS_PER_PRICE } }
      : {};
  return { ...slipway.model_prices, ...own };
}

export function toConversationInfo(record: ConversationRecord, folder: string): ConversationInfo {
  const { agentDetails: details } = record;
  return {
    id: record.id,
    agent: toPublishedAgent(record.agent),
    tool_module_qualnames: toolModules(record),
    workspace: { kind: 'LocalWorkspace', working_dir: record.workingDir },
    persistence_dir: folder,
    max_iterations: record.maxIterations,
    stuck_detection: record.stuckDetection,
    execution_status: record.status,
    confirmation_policy: record.confirmationPolicy,
    security_analyzer: record.securityAnalyzer,
    activated_knowledge_skills: record.activatedSkills,
    blocked_actions: {},
    blocked_messages: {},
    stats: toStats(record),
    secret_registry: { secret_sources: toSecretSources(record) },
    agent_state: { ...(record.wasRunning && { was_running: true }), ...(details && acpState(details)) },
    ...(details && acpModels(details)),
    title: record.title,
    tags: record.tags,
    metrics: toMetrics(record),
    created_at: record.createdAt,
    updated_at: record.updatedAt,
  };
}

/**
 * Adapts the agent to clients of the SDK, which refuse a condenser without a model, and tool servers in a wrapper or
 * with members that only we have.
 */
function toPublishedAgent(agent: ConversationRecord['agent']): ConversationInfo['agent'] {
  const { condenser, mcp_config: config } = agent;
  const llm = toPublishedModel(agent['llm']);
  return {
    ...agent,
    llm,
    ...(isJsonObject(condenser) && {
      condenser: {
        ...condenser,
        llm: toPublishedModel(condenser['llm'] ?? { ...llm, usage_id: 'condenser' }),
      },
    }),
    ...(isJsonObject(config) && {
      mcp_config: Object.fromEntries(
        Object.entries(Object(config['mcpServers'])).map(([name, server]) => {
          const { auth: _token, tools: _offered, ...published } = Object(server);
          return [name, published];
        }),
      ),
    }),
  };
}

/** Clients that are made of the published document require the member. */
function toPublishedModel(llm: unknown): object {
  return { is_subscription: false, ...Object(llm) };
}

/** Clients of the SDK import them to read the events of a conversation that others have started. */
function toolModules({ agent: { tools } }: ConversationRecord): ConversationInfo['tool_module_qualnames'] {
  const names = (Array.isArray(tools) ? tools : []).map((tool) => jsonText(tool, 'name') ?? '');
  return Object.fromEntries(
    names.filter((name) => SDK_TOOLS.has(name)).map((name) => [name, `openhands.tools.${name}.definition`]),
  );
}

function acpState({ name, version, capabilities }: AgentDetails): ConversationInfo['agent_state'] {
  return {
    acp_agent_name: name,
    acp_agent_version: version,
    acp_capabilities: {
      load_session: capabilities.loadSession,
      image: capabilities.image,
      mcp_http: capabilities.mcpHttp,
      mcp_sse: capabilities.mcpSse,
      model_choice: capabilities.modelChoice,
    },
  };
}

function acpModels({ currentModel, models, capabilities }: AgentDetails): Partial<ConversationInfo> {
  return {
    current_model_id: currentModel,
    available_models: models,
    supports_runtime_model_switch: capabilities.modelChoice,
  };
}

export function toStats(record: ConversationRecord): ConversationInfo['stats'] {
  const metrics = { ...toMetrics(record), costs: [], response_latencies: [], token_usages: [] };
  return { usage_to_metrics: { [record.llm.usageId]: metrics } };
}

function toMetrics({ llm, usage, maxBudget }: ConversationRecord): MetricsSnapshot {
  return {
    model_name: llm.model,
    accumulated_cost: usage.costUsd,
    cost_source: usage.costSource ?? 'unknown',
    max_budget_per_task: maxBudget,
    accumulated_token_usage: {
      model: llm.model,
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      context_window: 0,
      per_turn_token: 0,
      response_id: '',
    },
  };
}

function toSecretSources({ secrets }: ConversationRecord): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, { kind, description }]) => [
      name,
      // The address of a lookup is a secret too: such addresses carry tokens.
      { kind, description, ...(kind === 'LookupSecret' ? { url: MASK, headers: {} } : { value: MASK }) },
    ]),
  );
}

/** A client's move of the end of a conversation's history: the next logged event follows a different event. */
export interface Navigation {
  position: number;
  /** The event that the next one follows, or null if that is the first. */
  leaf: string | null;
}

/**
 * The events of the branch that ends before position `end`, as the navigations define it. Navigations are kept
 * beside the log, because clients reject events with unknown members.
 */
export function branchUpTo(
  log: EventLog<AgentEvent>,
  navigations: readonly Navigation[],
  end: number,
): AgentEvent[] {
  const pieces: AgentEvent[][] = [];
  let left = [...navigations];
  let until = end;
  for (;;) {
    const last = left.pop();
    pieces.unshift(log.entries.slice(last?.position ?? 0, until));
    if (last === undefined || last.leaf === null) {
      return pieces.flat();
    }
    until = log.positionOf(last.leaf) + 1;
    left = left.filter(({ position }) => position < until);
  }
}

/** The events up to and including one of the log; null if the log does not have it. */
export function branchTo(
  log: EventLog<AgentEvent>,
  navigations: readonly Navigation[],
  eventId: string,
): AgentEvent[] | null {
  const position = log.positionOf(eventId);
  const before = navigations.filter((navigation) => navigation.position <= position);
  return position === -1 ? null : branchUpTo(log, before, position + 1);
}
