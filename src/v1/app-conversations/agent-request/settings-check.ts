import type { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { isOwnServer } from '@slipway/common/model-endpoint.js';
import { isRemote, type ToolServer } from '@slipway/tool-servers/tool-servers.js';
import type { AcpAgent } from './acp-agents.js';
import type { AgentDialect } from './agent-dialect.js';
import { type AgentSettings, OWN_AGENT, SECURITY_ANALYZERS } from '@slipway/settings/agent-settings.js';

export interface CheckedSettings {
  agent: ChosenAgent;
  /** From the request, or else from the settings. */
  model: string | null;
  settings: AgentSettings;
  mcpConfig: readonly ToolServer[] | null;
  dialect: AgentDialect;
}

/** A problem is a sentence that names the setting. */
type SettingsVerdict = { problem: string } | { problem: null; model: string };

interface ChosenAgent {
  /** Null: our own agent. */
  name: string | null;
  /** The agent of that name; null for our own agent, and for a name that is not on the list. */
  acp: AcpAgent | null;
  listed: readonly string[];
}

const AGENTS = ['', OWN_AGENT];
/** Stands for the model of an agent that chooses it itself. */
const OWN_MODEL = '';

export function checkSettings(
  { agent, model, settings, mcpConfig, dialect }: CheckedSettings,
  addresses: OutboundAddresses,
): SettingsVerdict {
  const { security_analyzer: analyzer, llm_base_url: baseUrl } = settings;
  if (agent.acp === null && !AGENTS.includes(agent.name ?? '')) {
    const choice = [OWN_AGENT, ...agent.listed].join(' or ');
    return { problem: `There is no agent ${agent.name}: set agent to ${choice} in the settings.` };
  }
  if (analyzer && !Object.hasOwn(SECURITY_ANALYZERS, analyzer)) {
    const choice = Object.keys(SECURITY_ANALYZERS).join(', ');
    return {
      problem: `There is no security analyzer ${analyzer}: set security_analyzer to ${choice} or null in the settings.`,
    };
  }
  if (agent.acp !== null) {
    const problem =
      addressProblem('llm_base_url', usesBaseUrl(agent.acp) ? baseUrl : null, addresses) ??
      mcpProblem(mcpConfig, addresses);
    return problem === null ? { problem, model: model ?? OWN_MODEL } : { problem };
  }
  const verdict = modelVerdict(model, settings, dialect, addresses);
  const problem = verdict.problem ?? mcpProblem(mcpConfig, addresses);
  return problem === null ? verdict : { problem };
}

export function modelVerdict(
  model: string | null,
  settings: AgentSettings,
  dialect: AgentDialect,
  addresses: OutboundAddresses,
): SettingsVerdict {
  if (model === null || model.trim() === '') {
    return { problem: 'No model is set: choose one in the settings (llm_model), or in the request.' };
  }
  const { endpoint, toCheck } = dialect.modelServer(model, settings.llm_base_url);
  const problem =
    modelProblem(model, settings, endpoint) ?? addressProblem('llm_base_url', toCheck, addresses);
  return problem === null ? { problem, model } : { problem };
}

/** Whether the agent is told where the user's models are. */
function usesBaseUrl({ env }: AcpAgent): boolean {
  return Object.values(env).some((value) => value.includes('${llm_base_url}'));
}

/** Returns null when the model can be called. */
function modelProblem(
  model: string,
  { llm_base_url: baseUrl, llm_api_key: apiKey }: AgentSettings,
  endpoint: ReturnType<AgentDialect['modelServer']>['endpoint'],
): string | null {
  if (baseUrl !== null && baseUrl.trim() !== '') {
    // A model server of the user may need no key.
    return null;
  }
  if (endpoint && 'problem' in endpoint) {
    return endpoint.problem;
  }
  if (endpoint !== null && isOwnServer(model)) {
    return null;
  }
  return apiKey === null || apiKey === ''
    ? `No key is set for the model ${model}: store one in the settings (llm_api_key).`
    : null;
}

function addressProblem(
  setting: string,
  address: string | null,
  addresses: OutboundAddresses,
): string | null {
  const problem = address === null || address === '' ? null : addresses.problem(address);
  return problem === null ? null : `${setting} in the settings: ${problem}`;
}

function mcpProblem(servers: readonly ToolServer[] | null, addresses: OutboundAddresses): string | null {
  for (const { url } of servers?.filter(isRemote) ?? []) {
    const problem = addressProblem('mcp_config', url, addresses);
    if (problem !== null) {
      return problem;
    }
  }
  return null;
}
