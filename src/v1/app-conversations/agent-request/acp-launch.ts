import type { AcpAgentSpec } from '../../../agent-protocol/conversation.js';
import type { AgentSecret } from '../../../settings/agent-secrets.reader.js';
import { type AcpAgent, PLACEHOLDER } from './acp-agents.file.js';
import type { AgentSettings } from './agent-settings.js';

/** How an agent from the operator's list is started. */
export interface AcpLaunch {
  spec: AcpAgentSpec;
  /** What it may see, as variables of its environment. */
  secrets: ReadonlyMap<string, AgentSecret>;
  /** For the user: which of its variables have no value. */
  notes: string[];
}

type KnownSettings = Pick<AgentSettings, 'llm_model' | 'llm_base_url' | 'llm_api_key' | 'search_api_key'>;

/**
 * Fills in the operator's entry. A variable with a secret in it becomes a secret itself, so that it is masked and never
 * stored; one whose placeholder has no value is left out.
 *
 * @param secrets all secrets that the user's agents may have; those that the operator does not name are withheld
 * @param model of the request; null: the operator's choice, or else the agent's
 */
export function toAcpLaunch(
  agent: AcpAgent,
  settings: KnownSettings,
  secrets: ReadonlyMap<string, AgentSecret>,
  model: string | null,
): AcpLaunch {
  const named = new Set(agent.secrets);
  const open: Record<string, string | null> = {
    llm_model: settings.llm_model,
    llm_base_url: settings.llm_base_url,
  };
  const keys: Record<string, string | null> = {
    llm_api_key: settings.llm_api_key,
    search_api_key: settings.search_api_key,
  };
  const valueOf = (name: string): string | null => {
    const found = named.has(name) ? (secrets.get(name)?.value ?? keys[name]) : null;
    return (Object.hasOwn(open, name) ? open[name] : found) ?? null;
  };
  const shown: Record<string, string> = {};
  const hidden = new Map([...secrets].filter(([name]) => named.has(name)));
  const missing: string[] = [];
  for (const [name, template] of Object.entries(agent.env)) {
    const used = [...template.matchAll(PLACEHOLDER)].map(([, placeholder = '']) => placeholder);
    if (used.some((placeholder) => !valueOf(placeholder))) {
      missing.push(name);
    } else if (used.some((placeholder) => !Object.hasOwn(open, placeholder))) {
      hidden.set(name, { value: fill(template, valueOf), description: null });
    } else {
      shown[name] = fill(template, valueOf);
    }
  }
  const chosen = model ?? (agent.model === null ? null : fill(agent.model, valueOf));
  return {
    spec: {
      acp_command: [agent.command, ...agent.args],
      acp_env: shown,
      acp_model: chosen === '' ? null : chosen,
      acp_session_mode: agent.mode,
      acp_auth_method: agent.auth_method,
    },
    secrets: hidden,
    notes:
      missing.length === 0
        ? []
        : [`acp:${agent.name} starts without ${missing.join(', ')}: your settings have no value for it.`],
  };
}

function fill(template: string, valueOf: (name: string) => string | null): string {
  return template.replaceAll(PLACEHOLDER, (_, name: string) => valueOf(name) ?? '');
}

/** The abilities that an agent says it has. */
export interface AcpAbilities {
  loadSession: boolean;
  image: boolean;
  mcpHttp: boolean;
  mcpSse: boolean;
}

/** What an agent of the list cannot do for this user, a sentence each. */
export function acpLimitations(
  abilities: AcpAbilities,
  { hasBudget, remoteServers }: { hasBudget: boolean; remoteServers: readonly ('http' | 'sse')[] },
): string[] {
  const lost = remoteServers.filter((kind) => !(kind === 'http' ? abilities.mcpHttp : abilities.mcpSse));
  return [
    ...(abilities.loadSession
      ? []
      : [
          'The agent cannot load earlier sessions: after a pause of its sandbox it does not remember this conversation.',
        ]),
    ...(abilities.image ? [] : ['The agent cannot read images.']),
    ...[...new Set(lost)].map(
      (kind) => `The agent connects to no tool server over ${kind}: yours are left out.`,
    ),
    ...(hasBudget ? ['max_budget_per_task is enforced as far as the agent reports what it costs.'] : []),
  ];
}
