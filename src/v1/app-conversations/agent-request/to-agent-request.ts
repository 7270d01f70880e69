import type { GitAccess } from '../../../agent-protocol/git-access.js';
import type {
  AgentSpec,
  StartConversationRequest,
} from '../../../agent-protocol/start-conversation-request.js';
import type { SecretSource } from '../../../agent-protocol/secret-source.js';
import type { AgentConfig } from '../../../config/app-config.js';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import { SETTINGS_DEFAULTS } from '../../../settings/settings-defaults.js';
import type { AgentSecret } from '../../../settings/agent-secrets.reader.js';
import type { PortAddress } from '../../sandboxes/sandbox-addresses.js';
import type { StartRequest } from '../start/start-request.js';
import type { AgentDialect } from './agent-dialect.js';
import { agentLimits } from './agent-limits.js';
import type { AgentSettings } from './agent-settings.js';
import { mcpServerEntries } from './mcp-server-entries.js';
import type { ModelFacts } from './model-facts.js';
import { systemSuffix } from './system-suffix.js';

const UNKNOWN_CONTEXT_CONDENSER_TOKENS = 96_000;
const CONDENSED_SHARE = 0.6;
const TOKENS_PER_PRICE = 1_000_000;

/** Everything that decides how a conversation begins. */
export interface AgentStart {
  dialect: AgentDialect;
  /** UUID with dashes. */
  conversationId: string;
  workingDir: string;
  request: Pick<StartRequest, 'initial_message' | 'system_message_suffix' | 'agent_type'>;
  /** Where the user reaches what the agent starts. */
  ports: readonly PortAddress[];
  /** The request's, else that of the settings. */
  model: string;
  facts: ModelFacts;
  settings: AgentSettings;
  config: Pick<AgentConfig, 'llmTimeoutSeconds' | 'condenserTokens' | 'tavilyApiUrl'>;
  mcpConfig: ClearMcpConfig | null;
  /** What tools get as variables. */
  secrets: ReadonlyMap<string, AgentSecret>;
  git: GitAccess | null;
  /** OUTBOUND_ALLOWLIST; null: any server. */
  outboundAllowlist: string[] | null;
}

/** The request that begins a conversation on its agent server; the settings are known to be usable. */
export function toAgentRequest(start: AgentStart): StartConversationRequest {
  const { dialect, request, settings } = start;
  const { initial_message: message } = request;
  return {
    conversation_id: start.conversationId,
    workspace: { kind: 'LocalWorkspace', working_dir: start.workingDir },
    agent: toAgent(start),
    ...confirmation(settings),
    max_iterations: agentLimits(settings).max_iterations,
    stuck_detection: true,
    secrets: secretSources(start.secrets),
    initial_message: message && { role: 'user', content: message.content, run: true },
    ...(dialect === 'slipway' && { slipway: extension(start) }),
  };
}

/** What tools get as variables, as agent servers take it. */
export function secretSources(secrets: ReadonlyMap<string, AgentSecret>): Record<string, SecretSource> {
  return Object.fromEntries(
    [...secrets].map(([name, { value, description }]) => [
      name,
      { kind: 'StaticSecret', value, ...(description !== null && { description }) },
    ]),
  );
}

function toAgent(start: AgentStart): AgentSpec {
  const { dialect, model, facts, settings, config } = start;
  const { price } = facts;
  const llm = {
    model,
    api_key: settings.llm_api_key,
    base_url: settings.llm_base_url === '' ? null : settings.llm_base_url,
    timeout: config.llmTimeoutSeconds,
    ...(price && {
      input_cost_per_token: price.input / TOKENS_PER_PRICE,
      output_cost_per_token: price.output / TOKENS_PER_PRICE,
    }),
  };
  const servers = mcpServerEntries(start.mcpConfig);
  const suffix = systemSuffix(dialect, start.request, settings.language, start.ports);
  const condenses = settings.enable_default_condenser ?? SETTINGS_DEFAULTS.enable_default_condenser;
  return {
    kind: 'Agent',
    llm: { ...llm, usage_id: 'agent' },
    tools: [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }],
    ...(Object.keys(servers).length > 0 && { mcp_config: { mcpServers: servers } }),
    condenser: condenses
      ? {
          kind: 'LLMSummarizingCondenser',
          max_tokens: condenserTokens(config.condenserTokens, facts),
          // The schema wants it; ours condenses with the agent's own model.
          ...(dialect === 'stock' && { llm: { ...llm, usage_id: 'condenser' } }),
        }
      : null,
    ...(suffix !== null && { agent_context: { system_message_suffix: suffix } }),
  };
}

function condenserTokens(configured: number | null, { contextWindow }: ModelFacts): number {
  if (configured !== null) {
    return configured;
  }
  return contextWindow === null
    ? UNKNOWN_CONTEXT_CONDENSER_TOKENS
    : Math.floor(contextWindow * CONDENSED_SHARE);
}

/** Off: nothing waits. On: every call waits, or, where the model judges risks, those of high and unknown risk. */
function confirmation({
  confirmation_mode: isOn,
  security_analyzer: analyzer,
}: AgentSettings): Pick<StartConversationRequest, 'confirmation_policy' | 'security_analyzer'> {
  if (isOn !== true) {
    return { confirmation_policy: { kind: 'NeverConfirm' }, security_analyzer: null };
  }
  return analyzer === 'llm'
    ? {
        confirmation_policy: { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true },
        security_analyzer: { kind: 'LLMSecurityAnalyzer' },
      }
    : { confirmation_policy: { kind: 'AlwaysConfirm' }, security_analyzer: null };
}

function extension({
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
  };
}
