import type { AgentSpec, StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { addressToCheck, modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { StartedAcpAgent } from './acp-agents.js';
import { mcpServerEntries } from './agent-inputs.reader.js';
import { agentLimits, type AgentSettings, ownParameters } from './agent-settings.js';
import {
  AGENT_TOOLS,
  AgentDialect,
  type AgentStart,
  givenSkills,
  systemSuffix,
  toCommonRequest,
  toCondenser,
  toModel,
  toolServers,
} from './agent-dialect.js';

export class SlipwayDialect extends AgentDialect {
  readonly hasExtensions = true;

  request(start: AgentStart): StartConversationRequest {
    const agent = start.acp === null ? toAgent(start) : toAcpAgent(start, start.acp);
    return { ...toCommonRequest(start, agent), slipway: extension(start) };
  }

  endpoint(model: string, baseUrl: string | null): ReturnType<typeof modelEndpoint> {
    return modelEndpoint(model, baseUrl);
  }

  addressToCheck(model: string, baseUrl: string | null): string | null {
    return addressToCheck(model, baseUrl);
  }

  ineffectiveSettings({ load_memory: memory }: AgentSettings): string[] {
    return memory === true
      ? ['agent_context.load_memory: the agent server of this sandbox keeps no notes.']
      : [];
  }
}

function toAgent(start: AgentStart): AgentSpec {
  const { settings } = start;
  const disabled = settings.disabled_skills ?? [];
  const skills = givenSkills(start);
  return {
    kind: 'Agent',
    llm: { ...toModel(start, ownParameters(settings.llm_parameters)), usage_id: 'agent' },
    tools: AGENT_TOOLS,
    ...toolServers(mcpServerEntries(start.mcpConfig)),
    // It condenses with the agent's model.
    condenser: toCondenser(start),
    agent_context: {
      // AGENTS.md and skills of the repository, which the published schema cannot ask for.
      load_project_skills: true,
      ...(skills.length > 0 && { skills }),
      // Only the agent server knows the skills of the repository.
      ...(disabled.length > 0 && { disabled_skills: disabled }),
      ...systemSuffix(start),
    },
  };
}

/** An ACP agent brings its own model, tools and memory, and gets only the keys that the operator names. */
function toAcpAgent(start: AgentStart, { spec }: StartedAcpAgent): AgentSpec {
  return {
    kind: 'ACPAgent',
    ...spec,
    llm: { model: spec.acp_model ?? 'acp-managed', usage_id: 'agent' },
    ...toolServers(mcpServerEntries(start.mcpConfig)),
    agent_context: systemSuffix(start),
  };
}

function extension({
  request,
  settings,
  config,
  facts,
  model,
  git,
  outboundAllowlist,
}: AgentStart): NonNullable<StartConversationRequest['slipway']> {
  return {
    max_budget: agentLimits(settings).max_budget,
    language: settings.language === '' ? null : settings.language,
    search_api_key: settings.search_api_key,
    tavily_api_url: config.tavilyApiUrl,
    ...(facts.price && { model_prices: { [model]: facts.price } }),
    git,
    outbound_allowlist: outboundAllowlist,
    ...(request.result_schema && { result_schema: request.result_schema }),
  };
}
