import type { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import type { AgentDialect, AgentSettings } from './agent-settings.js';

/** Providers whose address needs not be given. */
const KNOWN = ['openai', 'anthropic'];

/**
 * What is missing to call a model, as a sentence that names the setting; null when nothing is.
 *
 * @param isOurs our agent server: the stock one knows the addresses of many providers itself
 */
function modelTargetProblem(
  model: string | null,
  baseUrl: string | null,
  apiKey: string | null,
  isOurs: boolean,
): string | null {
  if (model === null || model.trim() === '') {
    return 'No model is set: give llm_model in the settings, or in the request.';
  }
  const hasAddress = baseUrl !== null && baseUrl.trim() !== '';
  if (hasAddress) {
    // A model server of one's own may want no key.
    return null;
  }
  const [, provider = null] = /^([^/]+)\/./.exec(model.trim()) ?? [];
  if (isOurs && provider !== null && !KNOWN.includes(provider)) {
    return `The model ${model} needs the address of its provider: give llm_base_url in the settings.`;
  }
  return apiKey === null || apiKey === ''
    ? `No key is set for the model ${model}: give llm_api_key in the settings.`
    : null;
}

/** What of the settings the agent server in the sandbox cannot do, a sentence each. */
export function settingsNotes(
  dialect: AgentDialect,
  { max_budget_per_task: budget, search_api_key: searchKey }: AgentSettings,
): string[] {
  if (dialect === 'slipway') {
    return [];
  }
  return [
    ...(budget === null ? [] : ['max_budget_per_task is not enforced by the agent server of this sandbox.']),
    ...(searchKey === null ? [] : ['search_api_key: the agent server of this sandbox has no web search.']),
  ];
}

/** The names that the agent of this service has. */
const NATIVE_AGENTS = ['', 'CodeActAgent'];
const ANALYZERS = ['', 'llm'];

/** What is to be judged together. */
export interface JudgedSettings {
  /** The request's model, if it names one, goes before that of the settings. */
  model: string | null;
  settings: AgentSettings;
  mcpConfig: ClearMcpConfig | null;
  dialect: AgentDialect;
}

/** Why no conversation can begin with these settings: a sentence that names the setting; null when it can. */
export function settingsProblem(
  { model, settings, mcpConfig, dialect }: JudgedSettings,
  addresses: OutboundAddresses,
): string | null {
  const { agent, security_analyzer: analyzer, llm_base_url: baseUrl, llm_api_key: key } = settings;
  if (!NATIVE_AGENTS.includes(agent ?? '')) {
    return `There is no agent ${agent}: set agent to CodeActAgent in the settings.`;
  }
  if (!ANALYZERS.includes(analyzer ?? '')) {
    return `There is no security analyzer ${analyzer}: set security_analyzer to llm, or to null, in the settings.`;
  }
  return (
    modelTargetProblem(model, baseUrl, key, dialect === 'slipway') ??
    addressProblem('llm_base_url', baseUrl, addresses) ??
    mcpProblem(mcpConfig, addresses)
  );
}

function addressProblem(
  setting: string,
  address: string | null,
  addresses: OutboundAddresses,
): string | null {
  const problem = address === null || address === '' ? null : addresses.problem(address);
  return problem === null ? null : `${setting} in the settings: ${problem}`;
}

function mcpProblem(config: ClearMcpConfig | null, addresses: OutboundAddresses): string | null {
  for (const kind of ['sseServers', 'shttpServers'] as const) {
    for (const { url } of config?.[kind] ?? []) {
      const problem = addressProblem('mcp_config', url, addresses);
      if (problem !== null) {
        return problem;
      }
    }
  }
  return null;
}
