import { Injectable, Logger } from '@nestjs/common';
import type { CredentialsRequest } from '@slipway/agent-protocol/conversation-api.js';
import { AppConfig } from '../../../config/app-config.js';
import { isSameModelServer, type NamedModel } from '@slipway/models/model-check.js';
import { agentLimits, type AgentSettings, ownParameters } from '@slipway/settings/agent-settings.js';
import type { AppConversation } from '../conversation.entity.js';
import { ConversationQueries } from '../conversation.queries.js';
import { ConversationRepository } from '../conversation.repository.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { AcpAgents, grantedInputs, toStartedAcpAgent } from './acp-agents.js';
import {
  AgentInputsReader,
  type GivenInputs,
  mcpServerEntries,
  secretSources,
} from './agent-inputs.reader.js';
import { GitAccessReader } from './git-access.reader.js';

/** Builds what an agent server is given for a conversation that it has. */
@Injectable()
export class CredentialsBuilder {
  private readonly logger = new Logger(CredentialsBuilder.name);

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly queries: ConversationQueries,
    private readonly inputs: AgentInputsReader,
    private readonly gitAccess: GitAccessReader,
    private readonly config: AppConfig,
    private readonly acpAgents: AcpAgents,
  ) {}

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
      git: await this.gitAccess.read(use, settings, credentials),
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
