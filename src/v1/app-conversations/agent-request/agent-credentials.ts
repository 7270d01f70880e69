import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { CredentialsRequest } from '../../../agent-protocol/start-conversation-request.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import type { AppConversation } from '../app-conversation.entity.js';
import { StartTask } from '../start-task.entity.js';
import { requestSecrets } from '../start/request-secrets.js';
import { AgentInputsReader } from './agent-inputs.reader.js';
import { GitAccessReader } from './git-access.reader.js';
import { mcpServerEntries } from './mcp-server-entries.js';
import { secretSources } from './to-agent-request.js';

/** What a conversation has to be given again when its agent server has been started anew: nothing of it is ever written there. */
@Injectable()
export class AgentCredentials {
  constructor(
    @InjectRepository(StartTask) private readonly tasks: Repository<StartTask>,
    private readonly cipher: SecretCipher,
    private readonly inputs: AgentInputsReader,
    private readonly git: GitAccessReader,
  ) {}

  /**
   * As the user's settings are now, with the secrets that the conversation was started with.
   *
   * @throws SecretDecryptionError when something stored is not readable with the configured keys
   */
  async build({ id, userId }: Pick<AppConversation, 'id' | 'userId'>): Promise<CredentialsRequest> {
    const task = await this.tasks.findOneBy({ appConversationId: id, userId });
    const given = task ? requestSecrets(task, this.cipher) : new Map<string, string>();
    const { settings, mcpConfig, secrets } = await this.inputs.read(userId, given);
    return {
      llm_api_key: settings.llm_api_key,
      search_api_key: settings.search_api_key,
      mcp_config: { mcpServers: mcpServerEntries(mcpConfig) },
      secrets: secretSources(secrets),
      git: await this.git.find(userId, settings),
    };
  }
}
