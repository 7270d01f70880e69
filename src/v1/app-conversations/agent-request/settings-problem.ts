import type { OutboundAddresses } from '../../../common/http/outbound-addresses.js';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import type { AgentDialect } from './agent-dialect.js';
import type { AgentSettings } from './agent-settings.js';
import { modelTargetProblem } from './model-target-problem.js';

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
