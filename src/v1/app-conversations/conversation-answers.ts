import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { toHexId } from '../../common/hex-id.js';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { sessionKeyBinding } from '../sandboxes/sandbox-session-key.js';
import { toWireStatus } from '../sandboxes/sandbox-status.js';
import type { ConversationRow } from './conversation-row.js';
import type { AppConversationDto } from './dto/app-conversation.dto.js';
import { toStartRequestEchoDto } from './dto/start-request-echo.dto.js';
import type { StartTaskDto } from './dto/start-task.dto.js';
import { startDetail } from './start-detail.js';
import type { StartTaskRow } from './start-task-row.js';

/** Makes answers of rows. */
@Injectable()
export class ConversationAnswers {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly address: ServiceAddress,
    private readonly config: AppConfig,
  ) {}

  /** @throws SecretDecryptionError when a sandbox's key is not readable with the configured keys */
  conversation(row: ConversationRow): AppConversationDto {
    const isRunning = row.sandbox_status === 'RUNNING';
    return {
      id: toHexId(row.id),
      created_by_user_id: row.user_id,
      sandbox_id: row.sandbox_id,
      selected_repository: row.selected_repository,
      selected_branch: row.selected_branch,
      git_provider: row.git_provider,
      title: row.title,
      trigger: row.trigger,
      pr_number: row.pr_number,
      llm_model: row.llm_model,
      agent_kind: 'openhands',
      metrics: row.metrics,
      parent_conversation_id: row.parent_conversation_id && toHexId(row.parent_conversation_id),
      sub_conversation_ids: row.sub_conversation_ids.map(toHexId),
      public: row.public,
      tags: row.tags,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
      sandbox_status: toWireStatus(row.sandbox_status),
      execution_status: isRunning ? row.execution_status : null,
      conversation_url: isRunning
        ? `${this.agentServerUrl(row.sandbox_id, row.address)}/api/conversations/${toHexId(row.id)}`
        : null,
      session_api_key:
        row.session_key && this.cipher.decrypt(row.session_key, sessionKeyBinding(row.sandbox_id)),
      acp_server: null,
      launched_agent_profile: null,
    };
  }

  startTask(row: StartTaskRow): StartTaskDto {
    const isTalking = row.status === 'STARTING_CONVERSATION' || row.status === 'READY';
    return {
      id: toHexId(row.id),
      created_by_user_id: row.user_id,
      status: row.status,
      detail: startDetail(row),
      app_conversation_id: row.status === 'READY' ? toHexId(row.app_conversation_id) : null,
      sandbox_id: row.status === 'WORKING' ? row.request.sandbox_id : row.sandbox_id,
      agent_server_url:
        isTalking && row.sandbox_status === 'RUNNING'
          ? this.agentServerUrl(row.sandbox_id, row.address)
          : null,
      request: toStartRequestEchoDto(row.request),
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
    };
  }

  private agentServerUrl(sandboxId: string, address: string | null): string {
    return this.config.sandboxes.expose === 'direct' && address !== null
      ? address
      : `${this.address.publicUrl}/api/v1/sandboxes/${sandboxId}/agent-server`;
  }
}
