import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { usd } from '@slipway/common/model-cost.js';
import { DataSource, type EntityManager } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import { FollowedConversationRepository } from './followed-conversation.repository.js';
import { EventRepository } from './store/event.repository.js';
import { toStorable } from './store/storable-event.js';

/** As agents that count for themselves say it. */
const CODE = 'MaxBudgetReached';

/** Tells a conversation that its budget is spent, by what proxies have counted. */
@Injectable()
export class SpentBudgetRepository {
  constructor(
    private readonly dataSource: DataSource,
    private readonly events: EventRepository,
    private readonly conversations: FollowedConversationRepository,
    private readonly clock: Clock,
  ) {}

  /** In a sandbox, the one whose agent works: of several, and where none does, the one that began last. */
  async atWorkIn(sandboxId: string): Promise<string | null> {
    const all = await this.dataSource.manager.find(FollowedConversation, {
      select: { id: true, executionStatus: true },
      where: { sandboxId },
      order: { openedAt: 'DESC', id: 'ASC' },
    });
    const working = all.find(({ executionStatus }) => executionStatus === 'running');
    return (working ?? all[0])?.id ?? null;
  }

  /** Does so once, until its agent does anything else; within the caller's transaction. */
  async tell(manager: EntityManager, id: string): Promise<void> {
    const row = await manager.findOneBy(FollowedConversation, { id });
    if (!row?.metrics || row.error?.code === CODE) {
      return;
    }
    const { accumulated_cost: cost, max_budget_per_task: budget } = row.metrics;
    const detail =
      `The calls of models have cost ${usd(cost)} and the limit of the conversation (max_budget_per_task) is ` +
      `${usd(Number(budget))}. Raise it in the settings and send a message to go on.`;
    const now = new Date(this.clock.now());
    const event = {
      kind: 'ConversationErrorEvent',
      id: randomUUID(),
      timestamp: now.toISOString(),
      source: 'environment',
      code: CODE,
      detail,
    } as const;
    await this.conversations.updateState(id, { error: { code: CODE, detail } }, manager);
    await this.events.note(manager, [id], toStorable(event, now));
  }
}
