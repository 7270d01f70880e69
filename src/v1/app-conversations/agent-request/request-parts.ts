import type {
  AgentSpec,
  McpServerEntry,
  StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import type { GivenSkill } from '@slipway/agent-protocol/conversation-schemas.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import type { ModelFacts } from '@slipway/models/model-catalogue.js';
import { SETTINGS } from '@slipway/settings/settings.schema.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import { workPlaceNote } from '../work-places/work-place.js';
import type { AgentStart } from './agent-dialect.js';
import { secretSources } from './agent-inputs.reader.js';
import { agentLimits, type AgentSettings, SECURITY_ANALYZERS } from '@slipway/settings/agent-settings.js';

const UNKNOWN_CONTEXT_CONDENSER_TOKENS = 96_000;
const CONDENSED_SHARE = 0.6;
const TOKENS_PER_PRICE = 1_000_000;

/** The part of the request that all agent servers take. */
export function toCommonRequest(start: AgentStart, agent: AgentSpec, sender = {}): StartConversationRequest {
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
export function toModel(
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

export const AGENT_TOOLS = [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }];

export function toolServers(servers: Record<string, McpServerEntry>): Pick<AgentSpec, 'mcp_config'> {
  return Object.keys(servers).length > 0 ? { mcp_config: servers } : {};
}

export function toCondenser({
  settings,
  config,
  facts,
}: AgentStart): NonNullable<AgentSpec['condenser']> | null {
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
export function givenSkills({ skills, settings }: AgentStart): GivenSkill[] {
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
export function systemSuffix(
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
