import { Injectable, Logger } from '@nestjs/common';
import { type CredentialsRequest, hasFailed } from '@slipway/agent-protocol/conversation-api.js';
import { AppConfig } from '../../config/app-config.js';
import { isSameModelServer, type NamedModel } from '@slipway/models/model-check.js';
import { AgentServerClient, type RemoteConversation } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { RunningSandbox } from '../sandboxes/sandbox.queries.js';
import { AcpAgents, grantedInputs, toStartedAcpAgent } from './agent-request/acp-agents.js';
import type { AgentDialect } from './agent-request/agent-dialect.js';
import { agentDialect } from './agent-request/agent-dialects.js';
import {
  AgentInputsReader,
  type GivenInputs,
  mcpServerEntries,
  secretSources,
} from './agent-request/agent-inputs.reader.js';
import { agentLimits, type AgentSettings, ownParameters } from '@slipway/settings/agent-settings.js';
import type { AppConversation } from './conversation.entity.js';
import { ConversationQueries } from './conversation.queries.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationRepository } from './conversation.repository.js';
import type { KeyUse } from '@slipway/egress-rules/concealer.js';
import { OutsideCredentials } from './outside-credentials/outside-credentials.js';
import { StartTaskRepository } from './start-task.repository.js';
import { Delegation } from './start/delegation.js';

/** Our agent server refuses a conversation that lacks its key, without an effect. */
const MISSING_KEY_STATUS = 400;

/** Refreshes credentials and limits from the current settings. */
@Injectable()
export class CredentialRefreshService {
  private readonly logger = new Logger(CredentialRefreshService.name);

  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly delegation: Delegation,
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly queries: ConversationQueries,
    private readonly inputs: AgentInputsReader,
    private readonly config: AppConfig,
    private readonly acpAgents: AcpAgents,
    private readonly outside: OutsideCredentials,
  ) {}

  dialectOf({ specId }: RunningSandbox): AgentDialect {
    return agentDialect(this.specs.find(specId));
  }

  /**
   * Returns the conversation as it was before; null when the agent server does not have it.
   * @throws AgentServerError, SecretDecryptionError
   */
  async refresh(
    target: RunningSandbox,
    conversation: { id: string; userId: string },
  ): Promise<RemoteConversation | null> {
    const remote = await this.agentServers.findConversation(target, conversation.id);
    if (remote !== null) {
      const isOurs = this.dialectOf(target).takesSharedKeys(target);
      const use = await this.keyUse(conversation);
      const reads = this.outside.reads(target);
      const shown = this.outside.shownSecrets(target, use.agent, reads);
      const given = { shown, credentials: await reads.tokens() };
      const credentials = await this.build(conversation, isOurs, given);
      const concealer = await this.outside.concealer(target, use, reads);
      await this.agentServers.giveCredentials(target, conversation.id, await concealer.update(credentials));
    }
    return remote;
  }

  /** The same as at its start, unless another profile was chosen since. */
  private async keyUse({ id, userId }: Pick<AppConversation, 'id' | 'userId'>): Promise<KeyUse> {
    const [begun, start] = await Promise.all([
      this.conversations.find(userId, id),
      this.tasks.ofConversation(userId, id),
    ]);
    const profile = begun?.llmProfile ?? null;
    const { llm_profile: first = null, llm_model: model = null } = start?.request ?? {};
    return { agent: begun?.agent ?? null, profile, model: profile === first ? model : null };
  }

  /**
   * Refreshes the credentials before an action if they may have stopped the conversation, or after a refusal for a
   * missing key. Throws as `refresh` and the action.
   */
  async runWithRefresh(
    target: RunningSandbox,
    conversation: ConversationRow,
    action: () => Promise<void>,
  ): Promise<void> {
    await this.reserve(target, conversation);
    if (needsCredentialRefresh(conversation)) {
      await this.tryRefresh(target, conversation);
      await action();
      return;
    }
    try {
      await action();
    } catch (error) {
      const isRefusal = error instanceof AgentServerError && error.status === MISSING_KEY_STATUS;
      if (!isRefusal || !(await this.tryRefresh(target, conversation))) {
        throw error;
      }
      await action();
    }
  }

  /** One that has ended goes on with what its parent has left for it. */
  private async reserve(target: RunningSandbox, conversation: ConversationRow): Promise<void> {
    const { id, user_id: userId, execution_status: status, metrics } = conversation;
    if (conversation.parent_conversation_id === null || !(status === 'finished' || hasFailed(status))) {
      return;
    }
    const granted = await this.delegation.reserve(target, userId, id);
    if (granted !== null && granted < (metrics?.max_budget_per_task ?? Infinity)) {
      await this.agentServers.giveCredentials(target, id, { max_budget: granted });
    }
  }

  /** Returns whether the server has new credentials; without the conversation, it refuses the action itself. */
  private async tryRefresh(
    target: RunningSandbox,
    { id, user_id: userId }: ConversationRow,
  ): Promise<boolean> {
    return !this.dialectOf(target).keepsCredentials && (await this.refresh(target, { id, userId })) !== null;
  }

  /**
   * What restores credentials after a restart of the agent server, which never stores secrets, or after a stop whose
   * cause the user may have fixed: current settings with the secrets, model and address of the
   * start, as tools may have changed model and address in the sandbox. A key for another server is withheld, and the
   * agent server is told so.
   * @param isOurs whether the sandbox runs our own agent server, and no image of its user
   * @throws SecretDecryptionError
   */
  async build(
    { id, userId }: Pick<AppConversation, 'id' | 'userId'>,
    isOurs = true,
    given: GivenInputs = {},
  ): Promise<CredentialsRequest> {
    const [granted, begun, { delegated }] = await Promise.all([
      this.tasks.grantsOfConversation(userId, id),
      this.conversations.find(userId, id),
      this.queries.spending(userId, id),
    ]);
    if (begun?.adopted === true) {
      return this.buildAdopted(id, userId, begun);
    }
    const configuration = await this.inputs.readConfiguration(userId, begun?.llmProfile ?? null);
    const completed = this.inputs.withDefaults(configuration, {
      model: null,
      isOurs: isOurs && !begun?.agent,
    });
    const { selectedRepository: repository = null, gitProvider: provider = null } = begun ?? {};
    const work = repository === null ? null : { repository, provider };
    const stored = await this.inputs.read(userId, completed, granted, work, given);
    const agent = this.acpAgents.find(begun?.agent ?? null);
    const { settings, mcpConfig, secrets, credentials } = begun?.agent
      ? grantedInputs(agent, stored)
      : stored;
    const use = { userId, repository, provider, limits: granted.limits };
    const common = {
      search_api_key: settings.search_api_key,
      tavily_api_url: this.config.agent.tavilyApiUrl,
      mcp_config: mcpServerEntries(mcpConfig),
      git: await this.inputs.gitAccess(use, settings, credentials),
      ...agentLimits(settings),
      delegated_budget: delegated,
      language: settings.language === '' ? null : settings.language,
      outbound_allowlist: this.config.outbound.allowlist,
    };
    if (begun?.agent) {
      // An agent that the operator has taken off the list is not started again.
      const acp = agent && toStartedAcpAgent(agent, settings, secrets, begun.llmModel);
      return acp === null ? common : { ...common, acp: acp.spec, secrets: secretSources(acp.secrets) };
    }
    const model = {
      model: begun?.llmModel ?? settings.llm_model,
      // Older conversations only have the name of the model.
      base_url: begun?.llmBaseUrl ?? settings.llm_base_url,
    };
    const isForModel = this.isForModel(id, model, settings);
    return {
      ...(model.model && { llm_model: model.model }),
      llm_base_url: model.base_url === '' ? null : model.base_url,
      ...(isForModel
        ? { llm_api_key: settings.llm_api_key, llm_parameters: ownParameters(settings.llm_parameters) }
        : { llm_key_withheld: true }),
      ...common,
      secrets: secretSources(secrets),
    };
  }

  /**
   * A client that began the conversation at the agent server cannot know that the key of its model was lost. Tools,
   * secrets and limits stay with the client.
   */
  private async buildAdopted(
    id: string,
    userId: string,
    { llmModel, llmBaseUrl, agentKind }: Pick<AppConversation, 'llmModel' | 'llmBaseUrl' | 'agentKind'>,
  ): Promise<CredentialsRequest> {
    if (agentKind === 'acp') {
      // An ACP agent has its own keys.
      return { outbound_allowlist: this.config.outbound.allowlist };
    }
    const { settings } = await this.inputs.readConfiguration(userId, null);
    const model = { model: llmModel, base_url: llmBaseUrl };
    const isForModel = this.isForModel(id, model, settings);
    return {
      ...(llmModel && { llm_model: llmModel }),
      llm_base_url: llmBaseUrl === '' ? null : llmBaseUrl,
      ...(!isForModel && { llm_key_withheld: true }),
      // A key that the client has given stays when the settings have none.
      ...(isForModel && settings.llm_api_key !== null && { llm_api_key: settings.llm_api_key }),
      outbound_allowlist: this.config.outbound.allowlist,
    };
  }

  private isForModel(id: string, model: NamedModel, settings: AgentSettings): boolean {
    const isSameServer = isSameModelServer(model, {
      model: settings.llm_model,
      base_url: settings.llm_base_url,
    });
    // Another path of a shared host may belong to another service.
    const isForModel =
      isSameServer &&
      (settings.has_shared_key !== true || (model.base_url ?? '') === (settings.llm_base_url ?? ''));
    if (!isForModel) {
      this.logger.warn(
        'key withheld from a conversation: the settings name another model server than its own',
        { conversation_id: id },
      );
    }
    return isForModel;
  }
}

/** After an error or a spent budget, the user may have changed the key or the limit. */
export function needsCredentialRefresh({
  execution_status: status,
  metrics,
}: Pick<ConversationRow, 'execution_status' | 'metrics'>): boolean {
  const isSpent =
    metrics !== null &&
    metrics.max_budget_per_task !== null &&
    metrics.accumulated_cost >= metrics.max_budget_per_task;
  return status === 'error' || isSpent;
}
