import type { AgentSpec, StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { addressToCheck, modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import { allowedTools, type ClearMcpConfig } from '../../../settings/mcp/mcp-secrets.js';
import {
  AgentDialect,
  AGENT_TOOLS,
  type AgentStart,
  givenSkills,
  systemSuffix,
  toCommonRequest,
  toCondenser,
  toModel,
  toolServers,
} from './agent-dialect.js';
import { mcpServerEntries } from './agent-inputs.reader.js';
import { type AgentSettings, agentLimits, ownParameters } from './agent-settings.js';
import type { StartedAcpAgent } from './acp-agents.js';

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

/** For agent servers that know only the published schema. */
export class StockDialect extends AgentDialect {
  readonly hasExtensions = false;

  request(start: AgentStart): StartConversationRequest {
    return toCommonRequest(start, toStockAgent(start));
  }

  /** It knows the addresses of many providers. */
  endpoint(): null {
    return null;
  }

  addressToCheck(_model: string, baseUrl: string | null): string | null {
    return baseUrl;
  }

  ineffectiveSettings(
    { max_budget_per_task: budget, search_api_key: searchKey }: AgentSettings,
    mcpConfig: ClearMcpConfig | null,
  ): string[] {
    return [
      ...(budget === null
        ? []
        : ['max_budget_per_task is not enforced by the agent server of this sandbox.']),
      ...(searchKey === null ? [] : ['search_api_key: the agent server of this sandbox has no web search.']),
      ...(hasAllowedTools(mcpConfig)
        ? [
            'mcp_config: the agent server of this sandbox offers all tools of a server, whatever its tools name.',
          ]
        : []),
    ];
  }
}

function toStockAgent(start: AgentStart): AgentSpec {
  const { settings } = start;
  const { language } = settings;
  const llm = toModel(start, settings.llm_parameters);
  const condenser = toCondenser(start);
  const skills = givenSkills(start);
  const context = {
    ...(settings.load_memory === true && { load_memory: true }),
    ...(skills.length > 0 && { skills }),
    ...systemSuffix(start, language ? `Answer in this language: ${language}.` : null),
  };
  return {
    kind: 'Agent',
    llm: { ...llm, usage_id: 'agent' },
    tools: AGENT_TOOLS,
    // Their servers have another member that is called `tools`.
    ...toolServers(mcpServerEntries(start.mcpConfig, false)),
    condenser: condenser && {
      kind: condenser.kind,
      ...settings.condenser_parameters,
      max_tokens: condenser.max_tokens,
      // The schema requires it.
      llm: { ...llm, usage_id: 'condenser' },
    },
    ...(Object.keys(context).length > 0 && { agent_context: context }),
  };
}

function hasAllowedTools(config: ClearMcpConfig | null): boolean {
  const { sseServers = [], stdioServers = [], shttpServers = [] } = config ?? {};
  return [...sseServers, ...stdioServers, ...shttpServers].some(
    ({ details = {} }) => allowedTools(details) !== undefined,
  );
}

export const AGENT_DIALECTS = { slipway: new SlipwayDialect(), stock: new StockDialect() };

/** Null for an unknown specification: the dialect that all agent servers understand. */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? AGENT_DIALECTS.slipway : AGENT_DIALECTS.stock;
}
