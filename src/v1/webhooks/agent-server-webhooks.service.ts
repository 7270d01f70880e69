import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { KeyedLimit } from '@slipway/common/async.js';
import { jsonText } from '@slipway/common/json-access.js';
import type { BodyKind } from '@slipway/common/requests/json-body.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { ConversationAdoptionService } from '../app-conversations/adoption/conversation-adoption.service.js';
import { unknownToSandbox } from '../events/events.service.js';
import { SyncRequests } from '../events/log-sync/sync-requests.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.guard.js';

/** Merges the reports of this time about one conversation, to protect the database from a flood. */
const MERGED_MS = 25;

/**
 * Treats reports as hints: the log is complete and in order. Reports about unknown conversations start a search for
 * new ones; reports about conversations of other sandboxes are accepted and ignored.
 */
@Injectable()
export class AgentServerWebhooksService {
  private readonly turns = new KeyedLimit(1);

  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly syncRequests: SyncRequests,
    private readonly adoption: ConversationAdoptionService,
  ) {}

  /** @throws InvalidInputError when the conversation has no id; DomainError not_found when the id is not valid */
  async conversationChanged(sandbox: SandboxKeyHolder, info: unknown): Promise<void> {
    const id = jsonText(info, 'id');
    if (id === null) {
      throw new InvalidInputError({
        loc: ['body', 'id'],
        msg: 'Expected the id of a conversation.',
        type: 'missing',
      });
    }
    await this.requestSync(sandbox, id);
  }

  /**
   * Reads only the kind of the body, not the events.
   * @throws InvalidInputError when the events are not a list; DomainError not_found when the id is not valid
   */
  async eventsArrived(
    sandbox: SandboxKeyHolder,
    conversationId: string,
    body: BodyKind | null | undefined,
  ): Promise<void> {
    if (body !== 'list') {
      throw new InvalidInputError({ loc: ['body'], msg: 'Expected a list of events.', type: 'list_type' });
    }
    await this.requestSync(sandbox, conversationId);
  }

  private async requestSync(
    { sandboxId }: Pick<SandboxKeyHolder, 'sandboxId'>,
    conversationId: string,
  ): Promise<void> {
    const id = parseHexId(conversationId);
    if (id === null) {
      throw unknownToSandbox();
    }
    const name = `${sandboxId} ${id}`;
    if (this.turns.waiting(name) > 0) {
      return;
    }
    const requested = Promise.withResolvers<void>();
    void this.turns.run(name, async () => {
      await this.requestSyncOnce(sandboxId, id).then(requested.resolve, requested.reject);
      await delay(MERGED_MS, undefined, { ref: false });
    });
    await requested.promise;
  }

  private async requestSyncOnce(sandboxId: string, id: string): Promise<void> {
    const known = await this.conversations.sandboxId(id);
    if (known === sandboxId) {
      this.syncRequests.requestSync(id);
    } else if (known === null) {
      this.adoption.request(sandboxId);
    }
  }
}
