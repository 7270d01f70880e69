import { Injectable } from '@nestjs/common';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.error.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { RunningSandbox } from '../sandboxes/running-sandboxes.js';
import { AgentCredentials } from './agent-request/agent-credentials.js';
import { agentDialect } from './agent-request/agent-dialect.js';
import type { ConversationRow } from './conversation-row.js';
import { wantsRenewal } from './wants-renewal.js';

/** What our agent server answers while a conversation lacks its key; nothing was done then. */
const REFUSED = 400;

/**
 * Gives conversations of running sandboxes the settings as they are now where something is in their way that the user
 * may have changed: a limit that was reached, a key. All others are asked without a word more.
 */
@Injectable()
export class ConversationRenewal {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentials,
  ) {}

  /**
   * Does something at the conversation's agent server, which has the present settings where they matter.
   *
   * @param action is done again when it was refused before the settings were told
   * @throws AgentServerError, and SecretDecryptionError when something stored is not readable with the configured keys
   */
  async renewed(
    target: RunningSandbox,
    conversation: ConversationRow,
    action: () => Promise<void>,
  ): Promise<void> {
    if (wantsRenewal(conversation)) {
      await this.renew(target, conversation);
      await action();
      return;
    }
    try {
      await action();
    } catch (error) {
      const isRefusal = error instanceof AgentServerError && error.status === REFUSED;
      if (!isRefusal || !(await this.renew(target, conversation))) {
        throw error;
      }
      await action();
    }
  }

  /** @returns whether there was anything to tell: the stock server has no route for it, and keeps what it was given */
  private async renew(
    target: RunningSandbox,
    { id, user_id: userId }: Pick<ConversationRow, 'id' | 'user_id'>,
  ): Promise<boolean> {
    if (agentDialect(this.specs.find(target.specId)) !== 'slipway') {
      return false;
    }
    const remote = await this.agentServers.findConversation(target, id);
    if (remote === null) {
      // The action itself says so.
      return false;
    }
    const credentials = await this.credentials.build({ id, userId }, remote.model);
    await this.agentServers.giveCredentials(target, id, credentials);
    return true;
  }
}
