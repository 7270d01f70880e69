import type {
  AgentSpec,
  McpServerEntry,
  StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import type { GivenSkill } from '@slipway/agent-protocol/conversation-schemas.js';
import type { GitAccess } from '@slipway/agent-protocol/git.js';
import { type JsonObject, without } from '@slipway/common/json-access.js';
import { addressToCheck, modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { AgentConfig } from '../../../config/agent-config.js';
import { allowedTools, type ToolServer } from '../../../settings/mcp/tool-servers.js';
import type { AgentSecret } from '../../../settings/secrets/agent-secrets.reader.js';
import { SETTINGS } from '../../../settings/settings.schema.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { OperatorSkill } from '../../skills/operator-skills.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import type { StartRequest } from '../start-task.entity.js';
import { workPlaceNote } from '../work-places/work-place.js';
import type { StartedAcpAgent } from './acp-agents.js';
import { mcpServerEntries, secretSources } from './agent-inputs.reader.js';
import { agentLimits, type AgentSettings, ownParameters, SECURITY_ANALYZERS } from './agent-settings.js';
import type { ModelFacts } from '../../../settings/model-catalogue.js';

const UNKNOWN_CONTEXT_CONDENSER_TOKENS = 96_000;
const CONDENSED_SHARE = 0.6;
const TOKENS_PER_PRICE = 1_000_000;

export interface AgentStart {
  acp: StartedAcpAgent | null;
  conversationId: string;
  workingDir: string;
  request: Pick<StartRequest, 'initial_message' | 'system_message_suffix' | 'agent_type' | 'result_schema'> &
    Partial<
      Pick<StartRequest, 'started_by_agent' | 'parent_conversation_id' | 'selected_repository' | 'work_place'>
    >;
  /** Addresses for the user of web servers that the agent starts. */
  ports: readonly PortAddress[];
  /** From the request, or else from the settings. */
  model: string;
  facts: ModelFacts;
  settings: AgentSettings;
  config: Pick<AgentConfig, 'llmTimeoutSeconds' | 'condenserTokens' | 'tavilyApiUrl'>;
  mcpConfig: readonly ToolServer[] | null;
  /** Environment variables of the agent's tools. */
  secrets: ReadonlyMap<string, AgentSecret>;
  git: GitAccess | null;
  /** OUTBOUND_ALLOWLIST; null: any server. */
  outboundAllowlist: string[] | null;
  skills: readonly OperatorSkill[];
}

/** The kind of agent server that runs in a sandbox: what it is told, and what it can do. */
export interface AgentDialect {
  /** Whether it supports more than the published schema: ACP agents, results, cloning, and new credentials. */
  hasExtensions: boolean;

  request: (start: AgentStart) => StartConversationRequest;

  /** Returns where it calls a model; null when the agent server decides. */
  endpoint: (model: string, baseUrl: string | null) => ReturnType<typeof modelEndpoint> | null;

  /** An address of a model that the operator must have allowed. */
  addressToCheck: (model: string, baseUrl: string | null) => string | null;

  /** Settings without an effect, a sentence each. */
  ineffectiveSettings: (settings: AgentSettings, mcpConfig: readonly ToolServer[] | null) => string[];
}

/** The part of the request that all agent servers take. */
function toCommonRequest(start: AgentStart, agent: AgentSpec, sender = {}): StartConversationRequest {
  const { settings } = start;
  const { initial_message: message } = start.request;
  return {
    conversation_id: start.conversationId,
    workspace: { kind: 'LocalWorkspace', working_dir: start.workingDir },
    agent,
    ...confirmation(settings),
    max_iterations: agentLimits(settings).max_iterations,
    stuck_detection: true,
    secrets: secretSources(start.secrets),
    initial_message: message && { role: 'user', content: message.content, run: true, ...sender },
  };
}

/** `parameters` are those that the agent server uses. */
function toModel(
  { settings, model, facts, config }: AgentStart,
  parameters: JsonObject = {},
): AgentSpec['llm'] {
  const { price } = facts;
  return {
    ...parameters,
    model,
    api_key: settings.llm_api_key,
    base_url: settings.llm_base_url === '' ? null : settings.llm_base_url,
    timeout: numberOf(settings.llm_parameters?.['timeout']) ?? config.llmTimeoutSeconds,
    ...(price && {
      input_cost_per_token: price.input / TOKENS_PER_PRICE,
      output_cost_per_token: price.output / TOKENS_PER_PRICE,
    }),
  };
}

const AGENT_TOOLS = [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }];

function toolServers(servers: Record<string, McpServerEntry>): Pick<AgentSpec, 'mcp_config'> {
  return Object.keys(servers).length > 0 ? { mcp_config: servers } : {};
}

function toCondenser({ settings, config, facts }: AgentStart): NonNullable<AgentSpec['condenser']> | null {
  const condenses = settings.enable_default_condenser ?? SETTINGS.enable_default_condenser.default;
  return condenses
    ? {
        kind: 'LLMSummarizingCondenser',
        max_tokens:
          numberOf(settings.condenser_parameters?.['max_tokens']) ??
          condenserTokens(config.condenserTokens, facts),
      }
    : null;
}

/** The operator's skills but for disabled ones, in the published form that both agent servers take. */
function givenSkills({ skills, settings }: AgentStart): GivenSkill[] {
  const disabled = settings.disabled_skills ?? [];
  return skills
    .filter(({ name }) => !disabled.includes(name))
    .map(({ name, description, content, triggers }) => ({
      name,
      content,
      ...(description !== null && { description }),
      trigger: triggers.length === 0 ? null : { type: 'keyword', keywords: triggers },
    }));
}

const PLAN =
  'You are asked for a plan only. Read whatever helps, and write the plan into PLAN.md. Change no other file, ' +
  'and run nothing that changes anything.';

/** The member that ends the system prompt. `more` is what the agent server has no member for. */
function systemSuffix(
  { request, ports }: AgentStart,
  more: string | null = null,
): { system_message_suffix?: string } {
  const parts = [
    request.system_message_suffix,
    request.agent_type === 'plan' ? PLAN : null,
    request.work_place ? workPlaceNote(request.selected_repository ?? '', request.work_place) : null,
    portsText(ports),
    more,
  ].filter((part) => part !== null && part !== '');
  return parts.length === 0 ? {} : { system_message_suffix: parts.join('\n\n') };
}

function portsText(ports: readonly PortAddress[]): string | null {
  const list = ports.map(({ name, url }) => `$${name} (${url})`).join(', ');
  return list === ''
    ? null
    : `A web server that the user is to see must listen on the host in $LISTEN_HOST and on a port of these variables; in brackets is where the user opens it: ${list}. A page of one cannot reach the other: let one server answer for page and API. It runs in the background until the sandbox is paused.`;
}

/** On: every call waits or, with an analyzer, those of high and unknown risk. */
function confirmation({
  confirmation_mode: isOn,
  security_analyzer: analyzer,
}: AgentSettings): Pick<StartConversationRequest, 'confirmation_policy' | 'security_analyzer'> {
  if (isOn !== true) {
    return { confirmation_policy: { kind: 'NeverConfirm' }, security_analyzer: null };
  }
  const chosen = analyzer ? SECURITY_ANALYZERS[analyzer] : undefined;
  return chosen
    ? {
        confirmation_policy: { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true },
        security_analyzer: chosen,
      }
    : { confirmation_policy: { kind: 'AlwaysConfirm' }, security_analyzer: null };
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function condenserTokens(configured: number | null, { contextWindow }: ModelFacts): number {
  if (configured !== null) {
    return configured;
  }
  return contextWindow === null
    ? UNKNOWN_CONTEXT_CONDENSER_TOKENS
    : Math.floor(contextWindow * CONDENSED_SHARE);
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

const SLIPWAY: AgentDialect = {
  hasExtensions: true,
  request: (start) => ({
    ...toCommonRequest(
      start,
      start.acp === null ? toAgent(start) : toAcpAgent(start, start.acp),
      start.request.started_by_agent && { sender_conversation_id: start.request.parent_conversation_id },
    ),
    slipway: extension(start),
  }),
  endpoint: modelEndpoint,
  addressToCheck,
  ineffectiveSettings: ({ load_memory: memory }) =>
    memory === true ? ['agent_context.load_memory: the agent server of this sandbox keeps no notes.'] : [],
};

/** Serves agent servers that know only the published schema. */
const STOCK: AgentDialect = {
  hasExtensions: false,
  request: (start) => toCommonRequest(start, toStockAgent(start)),
  // It knows the addresses of many providers.
  endpoint: () => null,
  addressToCheck: (_model, baseUrl) => baseUrl,
  ineffectiveSettings: ({ max_budget_per_task: budget, search_api_key: searchKey }, mcpConfig) => [
    ...(budget === null ? [] : ['max_budget_per_task is not enforced by the agent server of this sandbox.']),
    ...(searchKey === null ? [] : ['search_api_key: the agent server of this sandbox has no web search.']),
    ...(hasAllowedTools(mcpConfig)
      ? [
          'mcp_config: the agent server of this sandbox offers all tools of a server, whatever its tools name.',
        ]
      : []),
  ],
};

export const AGENT_DIALECTS = { slipway: SLIPWAY, stock: STOCK };

/** Returns the stock dialect, which all agent servers understand, when the specification is unknown. */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? AGENT_DIALECTS.slipway : AGENT_DIALECTS.stock;
}
