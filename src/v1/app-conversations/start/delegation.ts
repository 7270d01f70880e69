import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockUser } from '../../../auth/user.repository.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { unlessStatus } from '@slipway/agent-client/agent-server.http.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { unknownConversation } from '../../events/events.service.js';
import { ConversationQueries } from '../conversation.queries.js';
import { RunningConversations } from '../running-conversations.js';
import type { StartRequest } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';

/** Conversations above one that an agent has started: a person's own, its child and its grandchild. */
const MAX_DEPTH = 3;

/** Messages that one conversation takes from agents, besides the one that it was started with. */
const MAX_MESSAGES = 100;

/** USD; below that, not even a first answer of a model could be paid. */
const LEAST_BUDGET = 0.000_1;

/** Bounds what agents start and say to each other: how deep, how often, and for how much. */
@Injectable()
export class Delegation {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly tasks: StartTaskRepository,
    private readonly agentServers: AgentServerClient,
    private readonly running: RunningConversations,
  ) {}

  /**
   * Grants a child what is left of its parent's budget; one that an agent starts gets half of that, so that it does not
   * leave its parent and the next ones without any. Holds the user's lock until the transaction ends, because two
   * children may be asked for at once.
   * @throws DomainError conversation_limit, budget_exceeded
   */
  async grant(manager: EntityManager, userId: string, request: StartRequest): Promise<StartRequest> {
    const { parent_conversation_id: parentId, started_by_agent: byAgent, max_budget: given } = request;
    if (parentId === null) {
      return request;
    }
    await lockUser(manager, userId);
    const isByAgent = byAgent === true;
    if (isByAgent && (await this.conversations.above(userId, parentId, manager)).length >= MAX_DEPTH) {
      throw new DomainError(
        'conversation_limit',
        `Agents start conversations at most ${MAX_DEPTH} below one of a person: do the work in this one.`,
      );
    }
    const left = await this.remaining(manager, userId, parentId, isByAgent);
    const share = left === null ? given : Math.min(isByAgent ? left / 2 : left, given ?? Infinity);
    return { ...request, max_budget: share ?? null };
  }

  /**
   * Whether an agent may say something to another one: only to what it has started, while it has some of its budget left,
   * and not without end.
   * @throws DomainError not_found, budget_exceeded, conversation_limit
   */
  async allowMessage(userId: string, senderId: string, id: string): Promise<void> {
    await this.tasks.transaction(async (manager) => {
      await lockUser(manager, userId);
      const receiver = await this.requireBelow(userId, senderId, id, manager);
      await this.remaining(manager, userId, senderId);
      if (!(await this.tasks.countAgentMessage(manager, receiver, MAX_MESSAGES))) {
        throw new DomainError(
          'conversation_limit',
          `A conversation takes at most ${MAX_MESSAGES} messages of agents: start another one.`,
        );
      }
    });
  }

  /** Returns the id as it is stored. @throws DomainError not_found unless the one conversation is below the other */
  async requireBelow(userId: string, aboveId: string, id: string, manager?: EntityManager): Promise<string> {
    const below = parseHexId(id);
    const above = below === null ? [] : await this.conversations.above(userId, below, manager);
    if (below === null || !above.some((each) => each === parseHexId(aboveId))) {
      throw unknownConversation();
    }
    return below;
  }

  /**
   * USD; null without a limit. A person may give again what was granted to agents and is not spent yet.
   * @throws DomainError budget_exceeded
   */
  private async remaining(
    manager: EntityManager,
    userId: string,
    id: string,
    isByAgent = true,
  ): Promise<number | null> {
    const { budget, spent } = await this.conversations.spending(userId, id, { manager });
    if (budget === null) {
      return null;
    }
    const [below] = isByAgent ? [] : await this.conversations.withBelow(userId, [id]);
    const left = budget - (isByAgent ? spent : (below?.cost ?? 0));
    if (left < LEAST_BUDGET) {
      throw new DomainError(
        'budget_exceeded',
        'Nothing is left of the budget of this conversation and those that it has started.',
      );
    }
    return left;
  }

  /**
   * Takes what was granted from what the parent may spend itself, before the child begins, or goes on after its end. The
   * parent may have spent some of it meanwhile, which is taken from the child.
   * @returns what the child may spend; null: no more than its settings say
   * @throws AgentServerError
   */
  async reserve(target: AgentServerTarget, userId: string, childId: string): Promise<number | null> {
    const share = await this.tasks.transaction(async (manager) => {
      await lockUser(manager, userId);
      const task = await this.tasks.ofConversation(userId, childId, manager);
      const {
        started_by_agent: byAgent,
        parent_conversation_id: parentId,
        max_budget: granted,
      } = task?.request ?? {};
      if (!task || byAgent !== true || !parentId || typeof granted !== 'number') {
        return null;
      }
      const spending = await this.conversations.spending(userId, parentId, { manager, resumed: childId });
      const excess = Math.max(0, spending.spent - (spending.budget ?? Infinity));
      const left = Math.max(0, granted - excess);
      if (left < granted) {
        await this.tasks.amend(task.id, { max_budget: left }, manager);
      }
      return { parentId, left, delegated: spending.delegated - granted + left };
    });
    if (share !== null) {
      await this.tell(target, share.parentId, share.delegated);
    }
    return share?.left ?? null;
  }

  /** Gives the conversation back what ended children have not spent. @throws DomainError as `RunningConversations.read` */
  async release(userId: string, givenId: string): Promise<void> {
    await this.running.read(userId, givenId, async (target, { id }) => {
      const { delegated } = await this.conversations.spending(userId, id);
      await this.tell(target, id, delegated);
    });
  }

  private async tell(target: AgentServerTarget, id: string, delegated: number): Promise<void> {
    // 404: it was deleted there, or the agent server is a stock one, which enforces no budget.
    await unlessStatus([404], this.agentServers.giveCredentials(target, id, { delegated_budget: delegated }));
  }
}
