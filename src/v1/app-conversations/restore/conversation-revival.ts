import { Injectable, Logger } from '@nestjs/common';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.error.js';
import type { AgentServerTarget } from '../../agent-servers/agent-server-target.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { RunningSandboxes } from '../../sandboxes/running-sandboxes.js';
import { AgentCredentials } from '../agent-request/agent-credentials.js';
import { agentDialect } from '../agent-request/agent-dialect.js';
import { type RestorableConversation, RestorableConversations } from './restorable-conversations.js';

/** Restores single conversations. */
@Injectable()
export class ConversationRevival {
  private readonly logger = new Logger(ConversationRevival.name);

  constructor(
    private readonly running: RunningSandboxes,
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentials,
    private readonly conversations: RestorableConversations,
  ) {}

  /**
   * Gives the conversation its credentials, and has it go on if it was running when its server ended. Repeatable.
   *
   * @throws AgentServerError, SecretDecryptionError; it may be tried again
   */
  async revive(conversation: RestorableConversation): Promise<void> {
    const target = await this.running.target(conversation.sandboxId);
    if (!target) {
      return;
    }
    // The stock server keeps what it was given, and has no route to be given it again.
    if (agentDialect(this.specs.find(target.specId)) === 'slipway') {
      await this.reviveRemotely(target, conversation);
    }
    await this.conversations.done(conversation, target.generation);
  }

  private async reviveRemotely(
    target: AgentServerTarget,
    conversation: RestorableConversation,
  ): Promise<void> {
    const { id } = conversation;
    const remote = await this.agentServers.findConversation(target, id);
    if (!remote) {
      this.logger.warn('the agent server does not have a conversation any more', { conversation_id: id });
      return;
    }
    await this.agentServers.giveCredentials(target, id, await this.credentials.build(conversation));
    if (remote.wasRunning) {
      await this.run(target, id);
    }
  }

  private async run(target: AgentServerTarget, id: string): Promise<void> {
    try {
      await this.agentServers.run(target, id);
    } catch (error) {
      // It runs already: its user was faster.
      if (!(error instanceof AgentServerError && error.status === 409)) {
        throw error;
      }
    }
  }
}
