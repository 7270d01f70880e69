import { Injectable } from '@nestjs/common';
import { DomainError, InvalidInputError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { jsonText } from '../../common/json-access.js';
import type { BodyKind } from '../../common/requests/json-body.js';
import { SyncRequests } from '../events/follow/sync-requests.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';

/**
 * What agent servers report about themselves. A report is only a hint: what happened is read from the agent server,
 * where it is complete and in order.
 *
 * A conversation that the service does not know is accepted and forgotten, because clients may start conversations of
 * their own at the agent server of their sandbox. No rows are made from what a sandbox says.
 */
@Injectable()
export class AgentServerWebhooksService {
  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly syncRequests: SyncRequests,
  ) {}

  /**
   * The state of a conversation has changed.
   *
   * @throws InvalidInputError when the conversation has no id; DomainError not_found when the id is not valid
   */
  async conversationChanged(sandbox: SandboxKeyHolder, info: unknown): Promise<void> {
    const id = jsonText(info, 'id');
    if (id === null) {
      throw new InvalidInputError([
        { loc: ['body', 'id'], msg: 'Expected the id of a conversation.', type: 'missing' },
      ]);
    }
    await this.requestSync(sandbox, id);
  }

  /**
   * A conversation has new events.
   *
   * @param body what was sent; the events themselves are never looked at
   * @throws InvalidInputError when the events are not a list; DomainError not_found when the id is not valid
   */
  async eventsArrived(
    sandbox: SandboxKeyHolder,
    conversationId: string,
    body: BodyKind | null | undefined,
  ): Promise<void> {
    if (body !== 'list') {
      throw new InvalidInputError([{ loc: ['body'], msg: 'Expected a list of events.', type: 'list_type' }]);
    }
    await this.requestSync(sandbox, conversationId);
  }

  private async requestSync({ sandboxId }: SandboxKeyHolder, conversationId: string): Promise<void> {
    const id = parseHexId(conversationId);
    if (id === null) {
      throw new DomainError('not_found', 'not_found', 'The sandbox has no conversation with this id.');
    }
    if ((await this.conversations.sandboxId(id)) === sandboxId) {
      this.syncRequests.requestSync(id);
    }
  }
}
