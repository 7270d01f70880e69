import { Injectable } from '@nestjs/common';
import type { StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from '../../../config/app-config.js';
import { referencedSecrets } from '@slipway/tool-servers/secret-references.js';
import type { AgentSecret } from '../../../settings/secrets/agent-secrets.reader.js';
import { OperatorSkills } from '../../skills/operator-skills.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import type { StartRequest } from '../start-task.entity.js';
import { type AcpAgent, AcpAgents, grantedInputs, toStartedAcpAgent, withheldNotes } from './acp-agents.js';
import { type AgentConfiguration, AgentInputsReader, type GivenInputs } from './agent-inputs.reader.js';
import { GitAccessReader } from './git-access.reader.js';
import type { AgentDialect } from './agent-dialect.js';
import type { AgentSettings } from '@slipway/settings/agent-settings.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { type CheckedSettings, checkSettings } from './settings-check.js';

interface NewConversation extends GivenInputs {
  userId: string;
  startId: string;
  conversationId: string;
  workingDir: string;
  ports: readonly PortAddress[];
  request: StartRequest;
  configuration: AgentConfiguration;
  /** The values are in clear. */
  secrets: ReadonlyMap<string, string>;
  dialect: AgentDialect;
  /** Whether its sandbox runs an image that the user chose. */
  hasOwnImage?: boolean;
}

type CheckedRequest = Pick<StartRequest, 'llm_model' | 'llm_profile' | 'agent' | 'sandbox_id'>;

export interface CheckedConfiguration {
  configuration: AgentConfiguration;
  /** Tells the user why no conversation can begin with these settings; null when one can. */
  problem: string | null;
}

/** The request, or a reason for the user why the conversation cannot begin. */
type AgentRequest =
  | { problem: string }
  | {
      problem: null;
      body: StartConversationRequest;
      /** Null: an ACP agent chooses its model itself. */
      model: string | null;
      /** Empty: the model is called at its provider's own address. */
      baseUrl: string;
      notes: string[];
      /** Null: the agent is our own. */
      acp: { agent: AcpAgent; hasBudget: boolean } | null;
    };

@Injectable()
export class AgentRequestBuilder {
  constructor(
    private readonly inputs: AgentInputsReader,
    private readonly gitAccess: GitAccessReader,
    private readonly catalogue: ModelCatalogue,
    private readonly addresses: OutboundAddresses,
    private readonly skills: OperatorSkills,
    private readonly config: AppConfig,
    private readonly acpAgents: AcpAgents,
  ) {}

  /** Reads the settings, and says whether a conversation can begin with them. */
  async check(userId: string, request: CheckedRequest, dialect: AgentDialect): Promise<CheckedConfiguration> {
    const configuration = await this.inputs.readConfiguration(userId, request.llm_profile ?? null);
    return { configuration, problem: this.problem(configuration, request, dialect) };
  }

  private problem(
    configuration: AgentConfiguration,
    request: CheckedRequest,
    dialect: AgentDialect,
  ): string | null {
    if (configuration.lacksProfile) {
      return unknownProfile(request.llm_profile ?? null);
    }
    const agent = this.agentOf(request, configuration.settings);
    // What an existing sandbox runs is known when the conversation begins.
    const isOurs =
      agent.acp === null && (request.sandbox_id !== null || dialect.takesSharedKeys({ hasOwnImage: false }));
    const completed = this.inputs.withDefaults(configuration, { model: request.llm_model, isOurs });
    const model = request.llm_model ?? completed.settings.llm_model;
    return checkSettings({ ...completed, agent, model, dialect }, this.addresses).problem;
  }

  async build(conversation: NewConversation): Promise<AgentRequest> {
    const { userId, request, configuration, dialect } = conversation;
    if (configuration.lacksProfile) {
      return { problem: unknownProfile(request.llm_profile ?? null) };
    }
    const agent = this.agentOf(request, configuration.settings);
    const isOurs =
      agent.acp === null && dialect.takesSharedKeys({ hasOwnImage: conversation.hasOwnImage === true });
    const completed = this.inputs.withDefaults(configuration, { model: request.llm_model, isOurs });
    const granted = {
      startId: conversation.startId,
      own: conversation.secrets,
      limits: request,
      maxBudget: request.max_budget ?? null,
    };
    const { selected_repository: repository, git_provider: provider } = request;
    const work = repository === null ? null : { repository, provider };
    const stored = await this.inputs.read(userId, completed, granted, work, conversation);
    const { settings, mcpConfig, secrets, credentials } =
      agent.acp === null ? stored : grantedInputs(agent.acp, stored);
    const verdict = checkSettings(
      { agent, model: request.llm_model ?? settings.llm_model, settings, mcpConfig, dialect },
      this.addresses,
    );
    if (verdict.problem !== null) {
      return { problem: verdict.problem };
    }
    const refusal = agent.acp && dialect.refusal(agent.acp);
    if (refusal !== null) {
      return { problem: refusal };
    }
    const acp = agent.acp && toStartedAcpAgent(agent.acp, settings, secrets, request.llm_model);
    const { model } = verdict;
    const use = { userId, repository, provider, limits: request };
    const body = dialect.request({
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
      git: await dialect.unpublished(() => this.gitAccess.read(use, settings, credentials)),
      outboundAllowlist: this.config.outbound.allowlist,
      skills: this.skills.all(),
    });
    const baseUrl = body.agent.llm.base_url ?? '';
    const notes = [
      ...dialect.ineffectiveSettings(settings, mcpConfig),
      ...referencedSecrets(mcpConfig).map(missingSecret),
      ...requestNotes(
        request,
        stored.secrets,
        agent.acp === null && body.slipway?.result_schema !== undefined,
      ),
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
    // Rows of earlier versions have no such member.
    const name = request.agent ?? settings.agent;
    return { name, acp: this.acpAgents.find(name), listed: this.acpAgents.names };
  }
}

function missingSecret(name: string): string {
  return `mcp_config: there is no secret ${name} for this conversation: store it, or name it in secret_names.`;
}

function requestNotes(
  { result_schema: schema, secret_names: names }: Pick<StartRequest, 'result_schema' | 'secret_names'>,
  secrets: ReadonlyMap<string, AgentSecret>,
  isAskedForResult: boolean,
): string[] {
  const missing = (names ?? []).filter((name) => !secrets.has(name));
  return [
    ...(schema && !isAskedForResult
      ? ['result_schema has no effect: the agent of this conversation is asked for no result.']
      : []),
    ...(missing.length > 0 ? [`secret_names: nothing is stored under ${missing.join(', ')}.`] : []),
  ];
}

function unknownProfile(name: string | null): string {
  return `There is no profile ${name}: store it with POST /api/v1/settings/profiles/${name}, or choose another.`;
}
