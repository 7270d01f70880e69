import { Injectable } from '@nestjs/common';
import { hasFailed } from '@slipway/agent-protocol/conversation-api.js';
import { AgentServerClient, type RemoteConversation } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { RunningSandbox } from '../sandboxes/sandbox.queries.js';
import { AgentCredentialsBuilder } from './agent-request/agent-credentials.builder.js';
import { agentDialect } from './agent-request/agent-dialect.js';
import type { ConversationRow } from './conversation.queries.js';
import { Delegation } from './start/delegation.js';

/** Our agent server refuses a conversation that lacks its key, without an effect. */
const MISSING_KEY_STATUS = 400;

/** Refreshes credentials and limits from the current settings. */
@Injectable()
export class CredentialRefreshService {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentialsBuilder,
    private readonly delegation: Delegation,
  ) {}

  /** The stock agent server has no route for it, and keeps its first credentials. */
  isSupported({ specId }: RunningSandbox): boolean {
    return agentDialect(this.specs.find(specId)).hasExtensions;
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
      const credentials = await this.credentials.build(conversation);
      await this.agentServers.giveCredentials(target, conversation.id, credentials);
    }
    return remote;
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
    return this.isSupported(target) && (await this.refresh(target, { id, userId })) !== null;
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
