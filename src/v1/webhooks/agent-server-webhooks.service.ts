import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DomainError, InvalidInputError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { jsonText } from '../../common/json-access.js';
import { NamedStatement } from '../../database/named-statement.js';
import { SyncRequests } from '../events/conversation-logs.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox.queries.js';

/**
 * What agent servers tell of themselves. It is taken as a hint only: what happened is read from the agent server, where
 * it is complete and in order.
 *
 * A conversation that is unknown here is accepted and forgotten, as clients may start conversations of their own at the
 * agent server of their sandbox; those are not among the service's, and no rows are made of what a sandbox says.
 */
@Injectable()
export class AgentServerWebhooksService {
  private readonly sandboxOf = new NamedStatement<{ sandbox_id: string }>(
    'webhook_conversation',
    'SELECT sandbox_id FROM followed_conversations WHERE id = $1',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly pokes: SyncRequests,
  ) {}

  /**
   * A conversation's state is another.
   *
   * @throws InvalidInputError for what is no conversation; DomainError not_found for an id that is none
   */
  async conversationChanged(sandbox: SandboxKeyHolder, info: unknown): Promise<void> {
    const id = jsonText(info, 'id');
    if (id === null) {
      throw new InvalidInputError([
        { loc: ['body', 'id'], msg: 'Expected the id of a conversation.', type: 'missing' },
      ]);
    }
    await this.changed(sandbox, id);
  }

  /**
   * A conversation has new events.
   *
   * @throws InvalidInputError for what is no list; DomainError not_found for an id that is none
   */
  async eventsArrived(sandbox: SandboxKeyHolder, conversationId: string, events: unknown): Promise<void> {
    if (!Array.isArray(events)) {
      throw new InvalidInputError([{ loc: ['body'], msg: 'Expected a list of events.', type: 'list_type' }]);
    }
    await this.changed(sandbox, conversationId);
  }

  private async changed({ sandboxId }: SandboxKeyHolder, conversationId: string): Promise<void> {
    const id = parseHexId(conversationId);
    if (id === null) {
      throw new DomainError('not_found', 'not_found', 'The sandbox has no conversation with this id.');
    }
    const [row] = await this.sandboxOf.run(this.dataSource, [id]);
    if (row?.sandbox_id === sandboxId) {
      this.pokes.requestSync(id);
    }
  }
}
