import type { ConversationInfo, MetricsSnapshot } from '@slipway/agent-protocol/conversation-api.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { ConversationRecord } from './conversation-record.js';

export function toConversationInfo(record: ConversationRecord, folder: string): ConversationInfo {
  return {
    id: record.id,
    agent: record.agent,
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
    agent_state: { ...(record.wasRunning && { was_running: true }), ...acpState(record) },
    ...acpModels(record),
    title: record.title,
    tags: record.tags,
    metrics: toMetrics(record),
    created_at: record.createdAt,
    updated_at: record.updatedAt,
  };
}

/** Uses the member names of the reference where there are any. */
function acpState({ agentDetails }: ConversationRecord): ConversationInfo['agent_state'] {
  if (agentDetails === null) {
    return {};
  }
  const { name, version, capabilities } = agentDetails;
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

function acpModels({
  agentDetails,
}: ConversationRecord): Pick<
  ConversationInfo,
  'current_model_id' | 'available_models' | 'supports_runtime_model_switch'
> {
  return agentDetails === null
    ? {}
    : {
        current_model_id: agentDetails.currentModel,
        available_models: [...agentDetails.models],
        supports_runtime_model_switch: agentDetails.capabilities.modelChoice,
      };
}

/** Usage and cost of the model so far, under the usage id that the client chose. */
export function toStats(record: ConversationRecord): ConversationInfo['stats'] {
  const metrics = { ...toMetrics(record), costs: [], response_latencies: [], token_usages: [] };
  return { usage_to_metrics: { [record.llm.usageId]: metrics } };
}

function toMetrics({ llm, usage, maxBudget }: ConversationRecord): MetricsSnapshot {
  return {
    model_name: llm.model,
    accumulated_cost: usage.costUsd,
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
