import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { CredentialsRequest } from '../../../agent-protocol/conversation.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import type { AppConversation } from '../conversation.entity.js';
import { StartTask } from '../start-task.entity.js';
import { requestSecrets } from '../start-task.repository.js';
import { mcpServerEntries, secretSources } from './agent-request.js';
import { AgentInputsReader, agentLimits } from './agent-settings.js';
import { GitAccessReader } from './git-access.js';

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

/** A model as settings and conversations name it. */
interface NamedModel {
  model: string | null;
  /** Blank or null: the provider's own address. */
  baseUrl: string | null;
}

/** Of names that name none. */
const DEFAULT_PROVIDER = 'openai';

/**
 * Whether two models are at the same server, so that a key for one may be sent to the other. Without an address the
 * name says the provider (`anthropic/x`); a model that is not named at all may be anybody's.
 */
export function isSameModelServer(one: NamedModel, other: NamedModel): boolean {
  const [from, to] = [serverOf(one), serverOf(other)];
  return from === null || to === null ? originOf(one) === originOf(other) : from === to;
}

function serverOf(named: NamedModel): string | null {
  const origin = originOf(named);
  if (origin !== '') {
    return origin;
  }
  const model = named.model?.trim() ?? '';
  return model === '' ? null : (/^([^/]+)\/./.exec(model)?.[1] ?? DEFAULT_PROVIDER);
}

function originOf({ baseUrl }: NamedModel): string {
  const text = baseUrl?.trim() ?? '';
  return URL.canParse(text) ? new URL(text).origin : text;
}
