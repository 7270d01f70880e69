import type { AgentSpec, StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { addressToCheck, modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { StartedAcpAgent } from './acp-agents.js';
import type { AgentDialect, AgentStart } from './agent-dialect.js';
import { mcpServerEntries } from './agent-inputs.reader.js';
import { agentLimits, ownParameters } from '@slipway/settings/agent-settings.js';
import {
  AGENT_TOOLS,
  givenSkills,
  systemSuffix,
  toCommonRequest,
  toCondenser,
  toModel,
  toolServers,
} from './request-parts.js';

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

/** Our own agent server. */
export const OWN_DIALECT: AgentDialect = {
  keepsCredentials: false,
  choosesAddresses: false,
  request: (start) => ({
    ...toCommonRequest(
      start,
      start.acp === null ? toAgent(start) : toAcpAgent(start, start.acp),
      start.request.started_by_agent && { sender_conversation_id: start.request.parent_conversation_id },
    ),
    slipway: extension(start),
  }),
  message: (message) => message,
  modelServer: (model, baseUrl) => ({
    endpoint: modelEndpoint(model, baseUrl),
    toCheck: addressToCheck(model, baseUrl),
  }),
  refusal: () => null,
  ineffectiveSettings: ({ load_memory: memory }) =>
    memory === true ? ['agent_context.load_memory: the agent server of this sandbox keeps no notes.'] : [],
  takesSharedKeys: ({ hasOwnImage }) => !hasOwnImage,
  unpublished: (read) => read(),
  // It works in its workspace.
  runInWorkspace: (commands, target, { workspace: _workspace, ...call }) =>
    commands.runShort(target, { ...call, cwd: null }),
  checkOut: (checkout, target, plan, signal) => checkout.byRoute(target, plan, signal),
  switchModel: async (agentServers, target, id, { llm, parameters, price, conceal }) => {
    const given = await conceal({
      llm_model: llm.model,
      llm_api_key: llm.api_key,
      llm_base_url: llm.base_url,
      llm_parameters: ownParameters(parameters),
      // The model's cost counts towards the budget only with its price.
      model_prices: price ? { [llm.model]: price } : {},
    });
    await agentServers.giveCredentials(target, id, given);
  },
};
