import { Injectable } from '@nestjs/common';
import { hasFailed } from '@slipway/agent-protocol/conversation-api.js';
import { AgentServerClient, type RemoteConversation } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { RunningSandbox } from '../sandboxes/sandbox.queries.js';
import type { AgentDialect } from './agent-request/agent-dialect.js';
import { agentDialect } from './agent-request/agent-dialects.js';
import { CredentialsBuilder } from './agent-request/credentials.builder.js';
import type { AppConversation } from './conversation.entity.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationRepository } from './conversation.repository.js';
import type { KeyUse } from '@slipway/egress-rules/concealer.js';
import { OutsideCredentials } from './outside-credentials/outside-credentials.js';
import { StartTaskRepository } from './start-task.repository.js';
import { Delegation } from './start/delegation.js';

/** Our agent server refuses a conversation that lacks its key, without an effect. */
const MISSING_KEY_STATUS = 400;

/** Gives agent servers credentials and limits from the current settings. */
@Injectable()
export class CredentialRefreshService {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly delegation: Delegation,
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly builder: CredentialsBuilder,
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
      const credentials = await this.builder.build(conversation, isOurs, given);
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
