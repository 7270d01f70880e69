import { Injectable } from '@nestjs/common';
import { AgentServerClient, type RemoteConversation } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { RunningSandbox } from '../sandboxes/sandbox.queries.js';
import { AgentCredentialsBuilder } from './agent-request/agent-credentials.builder.js';
import { agentDialect } from './agent-request/agent-dialects.js';
import type { ConversationRow } from './conversation.queries.js';

/** How our agent server refuses a conversation that lacks its key; nothing was done then. */
const MISSING_KEY_STATUS = 400;

/** Gives conversations of running sandboxes their credentials and limits, as their users' settings are now. */
@Injectable()
export class CredentialRefreshService {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentialsBuilder,
  ) {}

  /** The stock agent server has no route for it: it keeps the credentials that it was given at the start. */
  isSupported({ specId }: RunningSandbox): boolean {
    return agentDialect(this.specs.find(specId)).hasExtensions;
  }

  /**
   * Refreshes the credentials of a conversation, at an agent server that supports it.
   *
   * @returns the conversation as it was before; null when the agent server does not have it
   * @throws AgentServerError, and SecretDecryptionError when something stored is not readable with the configured keys
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
   * Runs an action at the conversation's agent server. Refreshes the credentials before it when they may have stopped
   * the conversation, or after a refusal for want of a key, and then runs the action again.
   *
   * @throws as `refresh` and the action do
   */
  async runWithRefresh(
    target: RunningSandbox,
    conversation: ConversationRow,
    action: () => Promise<void>,
  ): Promise<void> {
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

  /** @returns whether the agent server has new credentials; one without the conversation refuses the action itself */
  private async tryRefresh(
    target: RunningSandbox,
    { id, user_id: userId }: ConversationRow,
  ): Promise<boolean> {
    return this.isSupported(target) && (await this.refresh(target, { id, userId })) !== null;
  }
}

/** Whether a conversation ended with an error, or has spent its budget: its user may have changed the key or the limit. */
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
