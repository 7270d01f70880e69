import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { CredentialsRequest } from '../../../agent-protocol/start-conversation-request.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import type { AppConversation } from '../app-conversation.entity.js';
import { StartTask } from '../start-task.entity.js';
import { requestSecrets } from '../start/request-secrets.js';
import { agentLimits } from './agent-limits.js';
import { AgentInputsReader } from './agent-inputs.reader.js';
import { GitAccessReader } from './git-access.reader.js';
import { mcpServerEntries } from './mcp-server-entries.js';
import { isSameModelServer, type NamedModel } from './is-same-model-server.js';
import { secretSources } from './to-agent-request.js';

/**
 * What a conversation has to be given again when its agent server has been started anew, since no secret is ever written
 * there, and when something stopped it that may have been changed.
 */
@Injectable()
export class AgentCredentials {
  private readonly logger = new Logger(AgentCredentials.name);

  constructor(
    @InjectRepository(StartTask) private readonly tasks: Repository<StartTask>,
    private readonly cipher: SecretCipher,
    private readonly inputs: AgentInputsReader,
    private readonly git: GitAccessReader,
    private readonly config: AppConfig,
  ) {}

  /**
   * As the user's settings are now, limits included, with the secrets that the conversation was started with.
   *
   * @param model the conversation's own: a key for another server is not sent there, and the agent server is told so
   * @throws SecretDecryptionError when something stored is not readable with the configured keys
   */
  async build(
    { id, userId }: Pick<AppConversation, 'id' | 'userId'>,
    model: NamedModel,
  ): Promise<CredentialsRequest> {
    const task = await this.tasks.findOneBy({ appConversationId: id, userId });
    const given = task ? requestSecrets(task, this.cipher) : new Map<string, string>();
    const { settings, mcpConfig, secrets } = await this.inputs.read(userId, given);
    const isForModel = isSameModelServer(model, {
      model: settings.llm_model,
      baseUrl: settings.llm_base_url,
    });
    if (!isForModel) {
      this.logger.warn(
        'a conversation goes without a key: the settings name another model server than its own',
        {
          conversation_id: id,
        },
      );
    }
    return {
      ...(isForModel ? { llm_api_key: settings.llm_api_key } : { llm_key_withheld: true }),
      search_api_key: settings.search_api_key,
      mcp_config: { mcpServers: mcpServerEntries(mcpConfig) },
      secrets: secretSources(secrets),
      git: await this.git.find(userId, settings),
      ...agentLimits(settings),
      language: settings.language === '' ? null : settings.language,
      outbound_allowlist: this.config.outbound.allowlist,
    };
  }
}
