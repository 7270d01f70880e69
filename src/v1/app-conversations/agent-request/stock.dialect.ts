import type { AgentSpec } from '@slipway/agent-protocol/conversation-api.js';
import { without } from '@slipway/common/json-access.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { allowedTools, type ToolServer } from '@slipway/tool-servers/tool-servers.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { shellQuote } from '../start/repository-checkout.js';
import type { AgentDialect, AgentStart } from './agent-dialect.js';
import { mcpServerEntries } from './agent-inputs.reader.js';
import {
  AGENT_TOOLS,
  givenSkills,
  systemSuffix,
  toCommonRequest,
  toCondenser,
  toModel,
  toolServers,
} from './request-parts.js';

/** Backends that can say so set the folder. */
const ENTER_WORKSPACE = 'folder=${OH_WORKSPACE_PATH:-$folder}; mkdir -p -- "$folder"; cd -- "$folder"';

function toStockAgent(start: AgentStart): AgentSpec {
  const { settings } = start;
  const { language } = settings;
  // Stock servers choose the form of API by the model's name, so `api` is left out.
  const llm = toModel(start, settings.llm_parameters && without(settings.llm_parameters, ['api']));
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
    // Stock servers have another member that is called `tools`.
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

function hasAllowedTools(servers: readonly ToolServer[] | null): boolean {
  return servers?.some(({ details }) => allowedTools(details) !== undefined) ?? false;
}

async function unlessMissing(switching: Promise<void>): Promise<void> {
  try {
    await switching;
  } catch (error) {
    if (error instanceof AgentServerError && (error.status === 404 || error.status === 405)) {
      throw new DomainError(
        'conflict',
        'The agent server of this sandbox cannot change the model of a conversation: start another one.',
        { cause: error },
      );
    }
    throw error;
  }
}

/** Agent servers that know only the published schema. */
export const STOCK_DIALECT: AgentDialect = {
  keepsCredentials: true,
  choosesAddresses: true,
  request: (start) => toCommonRequest(start, toStockAgent(start)),
  message: ({ id: _id, sender_conversation_id: _sender, ...published }) => published,
  // It knows the addresses of many providers.
  modelServer: (_model, baseUrl) => ({ endpoint: null, toCheck: baseUrl }),
  refusal: ({ name }) =>
    `The agent server of this sandbox does not start ${name}: choose a specification with our own.`,
  ineffectiveSettings: ({ max_budget_per_task: budget, search_api_key: searchKey }, mcpConfig) => [
    ...(budget === null ? [] : ['max_budget_per_task is not enforced by the agent server of this sandbox.']),
    ...(searchKey === null ? [] : ['search_api_key: the agent server of this sandbox has no web search.']),
    ...(hasAllowedTools(mcpConfig)
      ? [
          'mcp_config: the agent server of this sandbox offers all tools of a server, whatever its tools name.',
        ]
      : []),
  ],
  takesSharedKeys: () => false,
  unpublished: async () => null,
  runInWorkspace: (commands, target, { workspace, command, ...call }) => {
    const enter = workspace === null ? [] : [`folder=${shellQuote(workspace)}`, ENTER_WORKSPACE];
    return commands.run(target, { ...call, command: ['set -e', ...enter, command].join('\n'), cwd: null });
  },
  checkOut: (checkout, target, plan, signal) => checkout.byCommand(target, plan, signal),
  switchModel: async (agentServers, target, id, { profile, llm, parameters, conceal }) => {
    // It keeps the first model of a usage id.
    const usage = `profile:${profile}:${Date.now()}`;
    const { llm_api_key: key } = await conceal({ llm_api_key: llm.api_key });
    const given = { ...parameters, ...llm, api_key: key, usage_id: usage };
    await unlessMissing(agentServers.switchLlm(target, id, given));
  },
};
