import type { SecurityAnalyzer } from '@slipway/agent-protocol/conversation-api.js';
import { isJsonObject, type JsonObject, jsonText, without } from '@slipway/common/json-access.js';
import { isSameModelServer } from '@slipway/models/model-check.js';
import { NO_DETAILS, type SettingsDetails } from './nested-settings.js';
import { OWN_PARAMETERS } from './setting-fields.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';
import { layered, llmOf, membersOver, type SettingsLayer } from './settings-layers.js';
import { AGENT_COLUMNS, type AgentColumn } from './settings.schema.js';
import type { SettingsKeys, SettingsRow } from './settings-row.js';

type RowSettings = Pick<SettingsRow, AgentColumn>;

/** The settings that say how an agent works, with keys in clear. */
export type AgentSettings = RowSettings &
  Pick<SettingsKeys, 'llm_api_key' | 'search_api_key'> & {
    /** The key is of a layer below the user's, for exactly this address. */
    has_shared_key?: boolean;
    /** Beyond name, address and key; may hold secrets. */
    llm_parameters?: JsonObject;
    /** Beyond whether there is one. */
    condenser_parameters?: JsonObject;
    load_memory?: boolean;
    disabled_skills?: string[];
  };

/** A null row, of a user without stored settings, makes every setting null. */
export function agentSettings(
  row: RowSettings | null,
  keys: SettingsKeys,
  { agent: { llm, condenser, agent_context: context }, app }: SettingsDetails = NO_DETAILS,
): AgentSettings {
  const disabled = disabledSkills(app);
  const memory = isJsonObject(context) ? context['load_memory'] : undefined;
  return {
    ...(isJsonObject(llm) && { llm_parameters: llm }),
    ...(isJsonObject(condenser) && { condenser_parameters: condenser }),
    ...(typeof memory === 'boolean' && { load_memory: memory }),
    ...(disabled.length > 0 && { disabled_skills: disabled }),
    ...(Object.fromEntries(AGENT_COLUMNS.map((name) => [name, row?.[name] ?? null])) as RowSettings),
    llm_api_key: keys.llm_api_key,
    search_api_key: keys.search_api_key,
  };
}

/** The preference `disabled_skills` as user interfaces store it; anything but a text names no skill. */
function disabledSkills({ disabled_skills: names }: JsonObject): string[] {
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

/** The settings with the model, address, key and parameters of a stored profile; null: as they are. */
export function withProfile(settings: AgentSettings, config: JsonObject | null): AgentSettings {
  if (config === null) {
    return settings;
  }
  const model = { model: jsonText(config, 'model'), base_url: jsonText(config, 'base_url') };
  const isSameServer = isSameModelServer(model, llmOf(settings, settings));
  return {
    ...settings,
    llm_model: model.model,
    llm_base_url: model.base_url,
    // A profile without a key uses the key of the settings if it is for the same server.
    llm_api_key: jsonText(config, 'api_key') ?? (isSameServer ? settings.llm_api_key : null),
    llm_parameters: without(config, ['model', 'base_url', 'api_key']),
  };
}

/** The settings without model, address, key and parameters. */
export function withoutModel({ llm_parameters: _parameters, ...settings }: AgentSettings): AgentSettings {
  return { ...settings, llm_model: null, llm_base_url: null, llm_api_key: null };
}

/** The settings over others, of which no model, key or parameter of a model is taken. */
export function overMembers(settings: AgentSettings, below: AgentSettings): AgentSettings {
  const members = { ...withoutModel(below), search_api_key: null };
  const condenser = { ...below.condenser_parameters, ...settings.condenser_parameters };
  return {
    ...membersOver(settings, members),
    ...(Object.keys(condenser).length > 0 && { condenser_parameters: condenser }),
  };
}

/**
 * The settings over a layer below them.
 * @param mcpConfig the user's own tool servers
 * @param model that the conversation names itself
 */
export function withLayer(
  settings: AgentSettings,
  mcpConfig: readonly ToolServer[] | null,
  model: string | null,
  below: SettingsLayer<object>,
): { settings: AgentSettings; mcpConfig: readonly ToolServer[] | null } {
  const { members, llm, parameters, owner, toolServers } = layered(
    {
      owner: 'user',
      members: settings,
      llm: { ...llmOf(settings, settings), ...(model !== null && { model }) },
      parameters: settings.llm_parameters,
      toolServers: mcpConfig,
    },
    below,
  );
  return {
    mcpConfig: toolServers,
    settings: {
      ...members,
      llm_model: llm.model,
      llm_base_url: llm.base_url,
      llm_api_key: llm.api_key,
      ...(owner !== 'user' && { has_shared_key: true }),
      ...(parameters && { llm_parameters: parameters }),
    },
  };
}

/** Those that our own agent server uses: it stores the others, which may be secret, so they are not sent. */
export function ownParameters(parameters: JsonObject = {}): JsonObject {
  const own = OWN_PARAMETERS.flatMap((name) =>
    name in parameters ? [[name, parameters[name]] as const] : [],
  );
  const { extra_headers: headers, ...others } = Object.fromEntries(own);
  return isJsonObject(headers) ? { ...others, extra_headers: textMembers(headers) } : others;
}

function textMembers(members: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
    ),
  );
}

const DEFAULT_MAX_ITERATIONS = 500;

/** Limits as agent servers take them. */
interface AgentLimits {
  max_iterations: number;
  /** USD per conversation. */
  max_budget: number | null;
}

export function agentLimits({
  max_iterations: iterations,
  max_budget_per_task: budget,
}: Pick<AgentSettings, 'max_iterations' | 'max_budget_per_task'>): AgentLimits {
  return { max_iterations: iterations ?? DEFAULT_MAX_ITERATIONS, max_budget: budget };
}

/** Returns the settings with the stricter of the two limits. */
export function withBudget(settings: AgentSettings, budget: number | null): AgentSettings {
  const { max_budget_per_task: own } = settings;
  return budget === null
    ? settings
    : { ...settings, max_budget_per_task: own === null ? budget : Math.min(own, budget) };
}

/** The model itself, signatures, or rules about shell commands judge the risk of calls. */
export const SECURITY_ANALYZERS: Readonly<Record<string, SecurityAnalyzer>> = {
  llm: { kind: 'LLMSecurityAnalyzer' },
  pattern: { kind: 'PatternSecurityAnalyzer' },
  policy_rail: { kind: 'PolicyRailSecurityAnalyzer' },
};

export const OWN_AGENT = 'CodeActAgent';
