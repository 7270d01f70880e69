import { Injectable } from '@nestjs/common';
import type { AgentSpec, StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import type { GitAccess } from '@slipway/agent-protocol/git.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import type { AgentConfig } from '../../../config/agent-config.js';
import { AppConfig } from '../../../config/app-config.js';
import type { ClearMcpConfig } from '../../../settings/mcp/mcp-config.types.js';
import type { AgentSecret } from '../../../settings/secrets/agent-secrets.reader.js';
import { SETTINGS } from '../../../settings/settings-table.js';
import { type OperatorSkill, OperatorSkills } from '../../skills/operator-skills.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import type { StartRequest } from '../start-task.entity.js';
import {
  type AcpAgent,
  AcpAgents,
  grantedInputs,
  type StartedAcpAgent,
  toStartedAcpAgent,
  withheldNotes,
} from './acp-agents.js';
import {
  AgentInputsReader,
  GitAccessReader,
  mcpServerEntries,
  secretSources,
} from './agent-inputs.reader.js';
import {
  type AgentDialect,
  agentLimits,
  type AgentSettings,
  type CheckedSettings,
  checkSettings,
  ineffectiveSettings,
  ownParameters,
  SECURITY_ANALYZERS,
} from './agent-settings.js';
import { ModelCatalogue, type ModelFacts } from './model-catalogue.js';

const UNKNOWN_CONTEXT_CONDENSER_TOKENS = 96_000;
const CONDENSED_SHARE = 0.6;
const TOKENS_PER_PRICE = 1_000_000;

/** A conversation that is to begin. */
interface NewConversation {
  userId: string;
  conversationId: string;
  workingDir: string;
  /** Where the user reaches the web servers that the agent starts. */
  ports: readonly PortAddress[];
  request: StartRequest;
  /** Secrets of the request, in clear. */
  secrets: ReadonlyMap<string, string>;
  dialect: AgentDialect;
}

/** The request for an agent server, or why the conversation cannot begin, for the user. */
type AgentRequest =
  | { problem: string }
  | {
      problem: null;
      body: StartConversationRequest;
      /** Null: an ACP agent chooses its model itself. */
      model: string | null;
      /** Where the model is called; empty: at its provider's own address. */
      baseUrl: string;
      /** For the user: which settings have no effect. */
      notes: string[];
      /** Null: the agent is our own. */
      acp: { agent: AcpAgent; hasBudget: boolean } | null;
    };

/** Builds the request that begins a conversation from what its user has stored. */
@Injectable()
export class AgentRequestBuilder {
  constructor(
    private readonly inputs: AgentInputsReader,
    private readonly git: GitAccessReader,
    private readonly catalogue: ModelCatalogue,
    private readonly addresses: OutboundAddresses,
    private readonly skills: OperatorSkills,
    private readonly config: AppConfig,
    private readonly acpAgents: AcpAgents,
  ) {}

  /** Why no conversation can begin with the user's settings; null when one can. */
  async problem(
    userId: string,
    request: Pick<StartRequest, 'llm_model' | 'llm_profile' | 'agent'>,
    dialect: AgentDialect,
  ): Promise<string | null> {
    const profile = request.llm_profile ?? null;
    const configuration = await this.inputs.readConfiguration(userId, profile);
    if (configuration.lacksProfile) {
      return unknownProfile(profile);
    }
    const model = request.llm_model ?? configuration.settings.llm_model;
    const agent = this.agentOf(request, configuration.settings);
    return checkSettings({ ...configuration, agent, model, dialect }, this.addresses).problem;
  }

  /** @throws SecretDecryptionError when something stored is not readable with the configured keys */
  async build(conversation: NewConversation): Promise<AgentRequest> {
    const { userId, request, dialect } = conversation;
    const profile = request.llm_profile ?? null;
    const stored = await this.inputs.read(userId, conversation.secrets, {
      names: request.secret_names ?? null,
      profile,
    });
    if (stored.lacksProfile) {
      return { problem: unknownProfile(profile) };
    }
    const agent = this.agentOf(request, stored.settings);
    const { settings, mcpConfig, secrets, credentials } =
      agent.acp === null ? stored : grantedInputs(agent.acp, stored);
    const verdict = checkSettings(
      { agent, model: request.llm_model ?? settings.llm_model, settings, mcpConfig, dialect },
      this.addresses,
    );
    if (verdict.problem !== null) {
      return { problem: verdict.problem };
    }
    if (agent.acp !== null && dialect === 'stock') {
      return {
        problem: `The agent server of this sandbox does not start ${agent.name}: choose a specification with our own.`,
      };
    }
    const acp = agent.acp && toStartedAcpAgent(agent.acp, settings, secrets, request.llm_model);
    const { model } = verdict;
    const body = toAgentRequest({
      dialect,
      acp,
      conversationId: conversation.conversationId,
      workingDir: conversation.workingDir,
      ports: conversation.ports,
      request,
      model,
      facts: await this.catalogue.facts(model),
      settings,
      config: this.config.agent,
      mcpConfig,
      secrets: acp?.secrets ?? secrets,
      git: dialect === 'slipway' ? await this.git.read(userId, settings, credentials) : null,
      outboundAllowlist: this.config.outbound.allowlist,
      skills: this.skills.all(),
    });
    const baseUrl = body.agent.llm.base_url ?? '';
    const notes = [
      ...ineffectiveSettings(dialect, settings, mcpConfig),
      ...requestNotes(agent.acp === null ? dialect : 'stock', request, stored.secrets),
      ...(acp?.notes ?? []),
    ];
    if (acp === null || agent.acp === null) {
      return { problem: null, body, model, baseUrl, notes, acp: null };
    }
    return {
      problem: null,
      body,
      model: acp.spec.acp_model ?? null,
      baseUrl: '',
      notes: [...notes, ...withheldNotes(agent.acp, conversation.secrets, { stored, mcpConfig })],
      acp: { agent: agent.acp, hasBudget: settings.max_budget_per_task !== null },
    };
  }

  private agentOf(request: Pick<StartRequest, 'agent'>, settings: AgentSettings): CheckedSettings['agent'] {
    // Rows of a version before this one have no such member.
    const name = request.agent ?? settings.agent;
    return { name, acp: this.acpAgents.find(name), listed: this.acpAgents.names };
  }
}

/** Sentences about what the request asks for and the conversation does not get. */
function requestNotes(
  dialect: AgentDialect,
  { result_schema: schema, secret_names: names }: Pick<StartRequest, 'result_schema' | 'secret_names'>,
  secrets: ReadonlyMap<string, AgentSecret>,
): string[] {
  const missing = (names ?? []).filter((name) => !secrets.has(name));
  return [
    ...(schema && dialect === 'stock'
      ? ['result_schema has no effect: the agent of this conversation is asked for no result.']
      : []),
    ...(missing.length > 0 ? [`secret_names: nothing is stored under ${missing.join(', ')}.`] : []),
  ];
}

/** Everything that decides how a conversation begins; the settings are known to be usable. */
export interface AgentStart {
  dialect: AgentDialect;
  /** Null: the agent is our own. */
  acp: StartedAcpAgent | null;
  /** UUID with dashes. */
  conversationId: string;
  workingDir: string;
  request: Pick<StartRequest, 'initial_message' | 'system_message_suffix' | 'agent_type' | 'result_schema'>;
  /** Where the user reaches the web servers that the agent starts. */
  ports: readonly PortAddress[];
  /** The model of the request, or else of the settings. */
  model: string;
  facts: ModelFacts;
  settings: AgentSettings;
  config: Pick<AgentConfig, 'llmTimeoutSeconds' | 'condenserTokens' | 'tavilyApiUrl'>;
  mcpConfig: ClearMcpConfig | null;
  /** They become environment variables of the agent's tools. */
  secrets: ReadonlyMap<string, AgentSecret>;
  git: GitAccess | null;
  /** OUTBOUND_ALLOWLIST; null: any server. */
  outboundAllowlist: string[] | null;
  /** Of the operator, for all agents. */
  skills: readonly OperatorSkill[];
}

/** The request that begins a conversation on its agent server. */
export function toAgentRequest(start: AgentStart): StartConversationRequest {
  const { dialect, request, settings } = start;
  const { initial_message: message } = request;
  return {
    conversation_id: start.conversationId,
    workspace: { kind: 'LocalWorkspace', working_dir: start.workingDir },
    agent: start.acp === null ? toAgent(start) : toAcpAgent(start, start.acp),
    ...confirmation(settings),
    max_iterations: agentLimits(settings).max_iterations,
    stuck_detection: true,
    secrets: secretSources(start.secrets),
    initial_message: message && { role: 'user', content: message.content, run: true },
    ...(dialect === 'slipway' && { slipway: extension(start) }),
  };
}

function toAgent(start: AgentStart): AgentSpec {
  const { dialect, model, facts, settings, config, skills } = start;
  const { price } = facts;
  const llm = {
    ...(dialect === 'stock' ? settings.llm_parameters : ownParameters(settings.llm_parameters)),
    model,
    api_key: settings.llm_api_key,
    base_url: settings.llm_base_url === '' ? null : settings.llm_base_url,
    timeout: numberOf(settings.llm_parameters?.['timeout']) ?? config.llmTimeoutSeconds,
    ...(price && {
      input_cost_per_token: price.input / TOKENS_PER_PRICE,
      output_cost_per_token: price.output / TOKENS_PER_PRICE,
    }),
  };
  const servers = mcpServerEntries(start.mcpConfig, start.dialect);
  const suffix = systemSuffix(dialect, start.request, settings.language, start.ports);
  const disabled = settings.disabled_skills ?? [];
  const given = skills.filter(({ name }) => !disabled.includes(name));
  const condenses = settings.enable_default_condenser ?? SETTINGS.enable_default_condenser.default;
  return {
    kind: 'Agent',
    llm: { ...llm, usage_id: 'agent' },
    tools: [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }],
    ...(Object.keys(servers).length > 0 && { mcp_config: { mcpServers: servers } }),
    condenser: condenses
      ? {
          kind: 'LLMSummarizingCondenser',
          ...(dialect === 'stock' && settings.condenser_parameters),
          max_tokens:
            numberOf(settings.condenser_parameters?.['max_tokens']) ??
            condenserTokens(config.condenserTokens, facts),
          // The schema requires it; our agent server condenses with the agent's own model.
          ...(dialect === 'stock' && { llm: { ...llm, usage_id: 'condenser' } }),
        }
      : null,
    ...((dialect !== 'stock' || suffix !== null || given.length > 0 || settings.load_memory === true) && {
      agent_context: {
        // What the repository has for agents: AGENTS.md and its skills. The published schema cannot ask for them.
        ...(dialect !== 'stock' && { load_project_skills: true }),
        ...(dialect === 'stock' && settings.load_memory === true && { load_memory: true }),
        ...(given.length > 0 && { skills: given.map(toAgentSkill) }),
        // Of the repository, whose skills only the agent server knows.
        ...(dialect !== 'stock' && disabled.length > 0 && { disabled_skills: disabled }),
        ...(suffix !== null && { system_message_suffix: suffix }),
      },
    }),
  };
}

/** An ACP agent brings its own model, tools and memory, and gets only the keys that the operator names. */
function toAcpAgent(start: AgentStart, { spec }: StartedAcpAgent): AgentSpec {
  const servers = mcpServerEntries(start.mcpConfig);
  const suffix = systemSuffix(start.dialect, start.request, start.settings.language, start.ports);
  return {
    kind: 'ACPAgent',
    ...spec,
    llm: { model: spec.acp_model ?? 'acp-managed', usage_id: 'agent' },
    ...(Object.keys(servers).length > 0 && { mcp_config: { mcpServers: servers } }),
    agent_context: { ...(suffix !== null && { system_message_suffix: suffix }) },
  };
}

/** In the published form, which both agent servers take. */
function toAgentSkill({ name, description, content, triggers }: OperatorSkill): Record<string, unknown> {
  return {
    name,
    content,
    ...(description !== null && { description }),
    trigger: triggers.length === 0 ? null : { type: 'keyword', keywords: triggers },
  };
}

function unknownProfile(name: string | null): string {
  return `There is no profile ${name}: store it with POST /api/v1/settings/profiles/${name}, or choose another.`;
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

const PLAN =
  'You are asked for a plan only. Read whatever helps, and write the plan into PLAN.md. Change no other file, ' +
  'and run nothing that changes anything.';

/** The end of the system prompt: the words of the request, and what the server has no member for. Null: nothing. */
function systemSuffix(
  dialect: AgentDialect,
  request: Pick<StartRequest, 'system_message_suffix' | 'agent_type'>,
  language: string | null,
  ports: readonly PortAddress[],
): string | null {
  const parts = [
    request.system_message_suffix,
    request.agent_type === 'plan' ? PLAN : null,
    portsText(ports),
    dialect === 'stock' && language ? `Answer in this language: ${language}.` : null,
  ].filter((part) => part !== null && part !== '');
  return parts.length === 0 ? null : parts.join('\n\n');
}

function portsText(ports: readonly PortAddress[]): string | null {
  const list = ports.map(({ name, url }) => `$${name} (${url})`).join(', ');
  return list === ''
    ? null
    : `A web server that the user is to see must listen on the host in $LISTEN_HOST and on a port of these variables; in brackets is where the user opens it: ${list}. A page of one cannot reach the other: let one server answer for page and API. It runs in the background until the sandbox is paused.`;
}

/** Off: no call waits. On: every call waits or, where an analyzer rates risks, those of high and unknown risk. */
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
