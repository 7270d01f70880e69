import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AuditRepository } from '../audit/audit.repository.js';
import { lockUser } from '../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { toHexId } from '@slipway/common/identifiers.js';
import type { FollowedChangeRequest } from '@slipway/git-providers/git-provider.js';
import type { WebhookEventType } from '../outbound-webhooks/webhook-event.js';
import { WebhookDeliveryRepository } from '../outbound-webhooks/webhook-delivery.repository.js';
import { ConversationActionsService } from '../v1/app-conversations/conversation-actions.service.js';
import { RunningConversations } from '../v1/app-conversations/running-conversations.js';
import type { ConversationRow } from '../v1/app-conversations/conversation-row.js';
import type { FollowedPullRequest } from '../v1/app-conversations/followed/followed-pull-request.entity.js';
import {
  type FollowChange,
  FollowedPullRequestRepository,
} from '../v1/app-conversations/followed/followed-pull-request.repository.js';
import { PendingMessagesService } from '../v1/app-conversations/pending/pending-messages.service.js';
import { decide, type FollowEnd, type FollowingConversation } from './follow.decision.js';
import { type Findings, roundMessage, type LinkedPullRequest, RoundTalk } from './round-talk.js';

/** Until the agent has its message. */
const DELIVERY_POLL_MS = 15_000;

/** Makes of a look what follows from it. Everything is stored before it is done, under the lease of the look. */
interface ToldRound {
  type: WebhookEventType | null;
  round: number;
  reason: string | null;
  causedBy?: string[];
}

@Injectable()
export class FollowRoundsService {
  private readonly logger = new Logger('Follow');

  constructor(
    private readonly followed: FollowedPullRequestRepository,
    private readonly talk: RoundTalk,
    private readonly messages: PendingMessagesService,
    private readonly actions: ConversationActionsService,
    private readonly running: RunningConversations,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly audit: AuditRepository,
    private readonly clock: Clock,
  ) {}

  /** @throws DomainError what may pass */
  async settle(
    linked: LinkedPullRequest,
    shown: FollowedChangeRequest | null,
    nextLookAt: Date,
  ): Promise<void> {
    const row = await this.withAnswers(linked, shown);
    const decision = decide(row, shown, conversationNow(linked.conversation), this.clock.now());
    const { provider, repository, number } = linked;
    const url = shown?.url ?? linked.url;
    const change: FollowChange = {
      provider,
      repository,
      number,
      url,
      headSha: shown?.headSha ?? row.headSha,
      known: decision.known,
      state: row.state,
      failures: 0,
      reason: null,
    };
    switch (decision.kind) {
      case 'wait':
        await this.wait(linked, change, earlier(nextLookAt, decision.lookAt));
        break;
      case 'restart':
        await this.restart(linked, change);
        break;
      case 'round':
        await this.beginRound({ ...linked, url }, change, decision.findings);
        break;
      case 'end':
        await this.end({ ...linked, url }, change, decision);
        break;
    }
  }

  /** The row as it is once the threads of a round that is over are answered. */
  private async withAnswers(
    linked: LinkedPullRequest,
    shown: FollowedChangeRequest | null,
  ): Promise<FollowedPullRequest> {
    const { row } = linked;
    if (row.state !== 'working' || row.idleSince === null) {
      return row;
    }
    const answers = shown?.state === 'open' ? await this.talk.answer(linked) : [];
    const comments = [...(row.known.comments ?? []), ...answers];
    return Object.assign(row, { state: 'watching', known: { ...row.known, comments } });
  }

  private async wait(
    { row, conversation }: LinkedPullRequest,
    change: FollowChange,
    next: Date,
  ): Promise<void> {
    const isPending =
      change.state === 'working' && row.messageId !== null && (await this.followed.isPending(row.messageId));
    const soon = new Date(this.clock.now() + DELIVERY_POLL_MS);
    const nextLookAt = isPending ? earlier(next, soon) : next;
    await this.followed.settle(this.followed.manager, row, change, nextLookAt);
    if (isPending) {
      this.deliver(conversation);
    }
  }

  private async restart({ row, conversation }: LinkedPullRequest, change: FollowChange): Promise<void> {
    const soon = new Date(this.clock.now() + DELIVERY_POLL_MS);
    if (await this.followed.settle(this.followed.manager, row, change, soon)) {
      this.deliver(conversation);
    }
  }

  private async beginRound(
    linked: LinkedPullRequest,
    change: FollowChange,
    findings: Findings,
  ): Promise<void> {
    const { row, conversation, repository, number } = linked;
    const { conversationId, userId, wishes } = row;
    const round = row.round + 1;
    const outputs = await this.talk.outputs(linked, findings.checks);
    const text = roundMessage({ repository, number, round, maxRounds: wishes.max_rounds, findings, outputs });
    const id = randomUUID();
    const begun: FollowChange = {
      ...change,
      state: 'working',
      round,
      messageId: id,
      unanswered: onePerThread(findings.comments),
      idleSince: null,
    };
    const soon = new Date(this.clock.now() + DELIVERY_POLL_MS);
    const isMine = await this.followed.manager.transaction(async (manager) => {
      // Everything that adds messages locks the user first.
      await lockUser(manager, userId);
      if (!(await this.followed.settle(manager, row, begun, soon))) {
        return false;
      }
      const content = [{ type: 'text' as const, text }];
      await this.messages.enqueue(manager, { id, userId, conversationId, content });
      const told = {
        type: 'pull_request.round',
        round,
        reason: null,
        causedBy: causesOf(linked, findings),
      } as const;
      await this.tell(manager, linked, told);
      return true;
    });
    if (isMine) {
      this.deliver(conversation);
    }
  }

  private async end(
    linked: LinkedPullRequest,
    change: FollowChange,
    { state, reason }: FollowEnd,
  ): Promise<void> {
    const { row } = linked;
    // At a message of its user, it works while it watches.
    if (state === 'stopped' && row.idleSince === null) {
      await this.actions.stop(row.userId, row.conversationId);
    }
    await this.followed.manager.transaction(async (manager) => {
      if (await this.followed.settle(manager, row, { ...change, state, reason }, null)) {
        const type = state === 'stopped' ? null : (`pull_request.${state}` as const);
        await this.tell(manager, linked, { type, round: row.round, reason });
      }
    });
  }

  private async tell(
    manager: EntityManager,
    { row, conversation, repository, number, url }: LinkedPullRequest,
    { type, round, reason, causedBy }: ToldRound,
  ): Promise<void> {
    const id = toHexId(row.conversationId);
    await this.audit.append(manager, {
      action: type === 'pull_request.round' ? 'conversation.follow_round' : 'conversation.follow_end',
      resourceId: id,
      ownerId: row.userId,
      by: 'service',
      details: {
        repository,
        number,
        round,
        ...(reason !== null && { reason }),
        ...(causedBy && { caused_by: causedBy }),
      },
    });
    if (type !== null) {
      const cost = conversation.metrics?.accumulated_cost ?? null;
      const data = { conversation_id: id, repository, number, url, round, reason, cost };
      await this.webhooks.publish(manager, row.userId, { type, data, title: conversation.title });
    }
  }

  /** Wakes the sandbox, and returns at once; the message waits in the database. */
  private deliver({ id, user_id: userId }: ConversationRow): void {
    this.running
      .wake(userId, id, 'a round of its pull request', 'follow_round')
      .catch((error: unknown) =>
        this.logger.warn('failed to wake conversation', { conversation_id: id, error: errorMessage(error) }),
      );
  }
}

function conversationNow({
  metrics,
  sandbox_status: sandbox,
  sandbox_failure: failure,
}: ConversationRow): FollowingConversation {
  const budget = metrics?.max_budget_per_task ?? null;
  return {
    isSpent: budget !== null && (metrics?.accumulated_cost ?? 0) >= budget,
    isGone: sandbox === null || sandbox === 'MISSING' || sandbox === 'DELETING',
    failure,
  };
}

/** Who wrote what the round is about, by login at the host, and what its checks and branches did. */
function causesOf({ provider }: LinkedPullRequest, { comments, checks, conflict }: Findings): string[] {
  const authors = new Set(comments.map(({ author }) => `${provider ?? 'host'}:${author}`));
  return [...authors, ...(checks.length > 0 ? ['checks'] : []), ...(conflict ? ['conflict'] : [])];
}

function earlier(one: Date, other = one): Date {
  return other < one ? other : one;
}

/** The last comment of each thread; one answer is enough for all that have none. */
function onePerThread(
  comments: readonly { id: string; threadId: string | null }[],
): FollowedPullRequest['unanswered'] {
  return [...new Map(comments.map(({ id, threadId }) => [threadId, { id, threadId }])).values()];
}
