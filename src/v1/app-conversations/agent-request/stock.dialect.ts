import type { AgentSpec, StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { allowedTools, type ClearMcpConfig } from '../../../settings/mcp/mcp-secrets.js';
import { mcpServerEntries } from './agent-inputs.reader.js';
import type { AgentSettings } from './agent-settings.js';
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

/** For agent servers that know only the published schema. */
export class StockDialect extends AgentDialect {
  readonly hasExtensions = false;

  request(start: AgentStart): StartConversationRequest {
    return toCommonRequest(start, toAgent(start));
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

function toAgent(start: AgentStart): AgentSpec {
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
