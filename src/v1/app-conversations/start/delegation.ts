import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockUser } from '../../../auth/user.repository.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { ConversationQueries } from '../conversation.queries.js';
import type { StartRequest } from '../start-task.entity.js';

/** Conversations above one that an agent has started: a person's own, its child and its grandchild. */
export const MAX_DEPTH = 3;

/** USD; below that, not even a first answer of a model could be paid. */
const LEAST_BUDGET = 0.000_1;

/** Bounds what agents start: how deep, and for how much. */
@Injectable()
export class Delegation {
  constructor(private readonly conversations: ConversationQueries) {}

  /**
   * Grants half of what is left of the parent's budget, so that one child does not leave its parent and the next ones
   * without any. Holds the user's lock until the transaction ends, because two children may be asked for at once.
   * @throws DomainError conversation_limit, budget_exceeded
   */
  async grant(manager: EntityManager, userId: string, request: StartRequest): Promise<StartRequest> {
    const { parent_conversation_id: parentId, started_by_agent: byAgent } = request;
    if (byAgent !== true || parentId === null) {
      return request;
    }
    await lockUser(manager, userId);
    if (((await this.conversations.depth(manager, userId, parentId)) ?? 0) >= MAX_DEPTH) {
      throw new DomainError(
        'conflict',
        'conversation_limit',
        `Agents start conversations at most ${MAX_DEPTH} below one of a person: do the work in this one.`,
      );
    }
    const remaining = await this.conversations.remainingBudget(manager, userId, parentId);
    if (remaining !== null && remaining < LEAST_BUDGET) {
      throw new DomainError(
        'payment_required',
        'budget_exceeded',
        'Nothing is left of the budget of this conversation and those that it has started.',
      );
    }
    return { ...request, max_budget: remaining === null ? null : remaining / 2 };
  }
}
