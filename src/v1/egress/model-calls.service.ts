import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { callCost } from '@slipway/common/model-cost.js';
import type { ReportedCall } from '@slipway/egress-proxy/protocol.js';
import { DataSource } from 'typeorm';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import {
  type CountedUsage,
  ModelUsageRepository,
  NO_CONVERSATION,
} from '../../usage/model-usage.repository.js';
import { ConversationActionsService } from '../app-conversations/conversation-actions.service.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { SpentBudgetRepository } from '../events/spent-budget.repository.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { calledModel } from './called-model.js';
import { EgressMeterRepository } from './egress-meter.repository.js';

interface Spender {
  userId: string;
  conversationId: string;
}

/** Counts calls of models that proxies saw, and ends runs of agents that have spent their budget. */
@Injectable()
export class ModelCallsService {
  private readonly logger = new Logger(ModelCallsService.name);

  constructor(
    private readonly dataSource: DataSource,
    private readonly sandboxes: SandboxRepository,
    private readonly meters: EgressMeterRepository,
    private readonly usage: ModelUsageRepository,
    private readonly conversations: FollowedConversationRepository,
    private readonly budgets: SpentBudgetRepository,
    private readonly catalogue: ModelCatalogue,
    private readonly actions: ConversationActionsService,
  ) {}

  /** Counts each call once, however often it is reported; nothing for a sandbox that was removed meanwhile. */
  async count(sandboxId: string, proxy: string, calls: readonly ReportedCall[]): Promise<void> {
    if (calls.length === 0) {
      return;
    }
    const sandbox = await this.sandboxes.find(sandboxId);
    if (sandbox === null) {
      return;
    }
    const { userId } = sandbox;
    const conversationId = await this.budgets.atWorkIn(sandboxId);
    const priced = await Promise.all(
      calls.map(async (call) => ({ ...call, counted: await this.counted(call) })),
    );
    const spent = await this.dataSource.transaction(async (manager) => {
      if (!(await this.sandboxes.keep(manager, sandboxId))) {
        return null;
      }
      const fresh = await this.meters.take(manager, { sandboxId, proxy }, priced);
      const owner =
        conversationId === null
          ? { conversationId: NO_CONVERSATION, automationId: null }
          : await this.conversations.spender(manager, conversationId);
      await this.usage.add(
        manager,
        { userId, ...owner, source: 'proxy' },
        fresh.map(({ counted }) => counted),
      );
      if (conversationId === null || fresh.length === 0) {
        return null;
      }
      const cost = await this.usage.costAtProxies(manager, userId, conversationId);
      if (!(await this.conversations.raiseCost(manager, conversationId, cost))) {
        return null;
      }
      await this.budgets.tell(manager, conversationId);
      return { userId, conversationId };
    });
    if (spent !== null) {
      await this.stop(spent);
    }
  }

  private async counted(call: ReportedCall): Promise<CountedUsage> {
    const { name, priced } = calledModel(call);
    const prices = await Promise.all(priced.map(async (each) => (await this.catalogue.facts(each)).price));
    const price = prices.find((each) => each !== null) ?? null;
    return {
      day: call.at.slice(0, 10),
      model: name,
      calls: 1,
      inputTokens: call.input,
      outputTokens: call.output,
      cachedTokens: call.cacheRead,
      cost: call.cost ?? (price && callCost(price, call)),
    };
  }

  /** An agent that counts for itself has ended by then; others go on until they are told. */
  private async stop({ userId, conversationId }: Spender): Promise<void> {
    try {
      await this.actions.stop(userId, conversationId);
    } catch (error) {
      // The next call that is reported ends it.
      this.logger.warn('failed to stop conversation that has spent its budget', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    }
  }
}
