import { Injectable, Logger } from '@nestjs/common';
import type { ConversationStatus } from '../../../agent-protocol/conversation-info.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.error.js';
import type { AgentServerTarget } from '../../agent-servers/agent-server-target.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { RunningSandboxes } from '../../sandboxes/running-sandboxes.js';
import { AgentCredentials } from '../agent-request/agent-credentials.js';
import { agentDialect } from '../agent-request/agent-dialect.js';
import { type RestorableConversation, RestorableConversations } from './restorable-conversations.js';

/** Nothing goes on there by itself, whatever was seen last. */
const AT_REST: ReadonlySet<ConversationStatus> = new Set(['finished', 'waiting_for_confirmation']);

/** Restores single conversations. */
@Injectable()
export class ConversationRevival {
  private readonly logger = new Logger(ConversationRevival.name);
  /** Conversations of stock servers that have to go on, until they were told to. */
  private readonly interrupted = new Set<string>();

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
      this.interrupted.delete(conversation.id);
      return;
    }
    if (agentDialect(this.specs.find(target.specId)) === 'slipway') {
      await this.reviveRemotely(target, conversation);
    } else {
      await this.goOn(target, conversation);
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
    await this.agentServers.giveCredentials(
      target,
      id,
      await this.credentials.build(conversation, remote.model),
    );
    if (remote.wasRunning) {
      await this.goOnRemotely(target, id);
    }
  }

  /** One that still lacks its key does not go on, and has told its user why; there is nothing to be tried again. */
  private async goOnRemotely(target: AgentServerTarget, id: string): Promise<void> {
    try {
      await this.run(target, id);
    } catch (error) {
      if (!(error instanceof AgentServerError && error.status === 400)) {
        throw error;
      }
      this.logger.warn('a conversation does not go on by itself', {
        conversation_id: id,
        reason: error.detail,
      });
    }
  }

  /**
   * The stock server keeps what it was given, and has no route to be given it again. That a conversation was running it
   * does not tell: while it loads it makes of that another status, which is soon the one that is known here.
   */
  private async goOn(
    target: AgentServerTarget,
    { id, executionStatus }: RestorableConversation,
  ): Promise<void> {
    if (executionStatus === 'running') {
      this.interrupted.add(id);
    }
    if (!this.interrupted.has(id)) {
      return;
    }
    const remote = await this.agentServers.findConversation(target, id);
    if (remote && !AT_REST.has(remote.status)) {
      await this.run(target, id);
    }
    this.interrupted.delete(id);
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
