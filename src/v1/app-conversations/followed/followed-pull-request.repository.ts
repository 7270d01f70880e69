import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, In, IsNull, MoreThanOrEqual, Not, Repository } from 'typeorm';
import { mayAct } from '../../../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { LeasedRows, type LeasedTable, type Taken } from '@slipway/database/leased-rows.js';
import type { ToldChangeRequest } from '@slipway/git-providers/git-provider.js';
import type { StartTask } from '../start-task.entity.js';
import { type AnsweredComment, FollowedPullRequest } from './followed-pull-request.entity.js';

export type FollowChange = Partial<
  Omit<
    FollowedPullRequest,
    'conversation' | 'conversationId' | 'userId' | 'attempt' | 'leasedBy' | 'leasedUntil' | 'nextLookAt'
  >
>;

interface NotedWork {
  id: string;
  /** The `attempt` of the row in `followed_pull_requests`. */
  attempt: number;
  /** Null: it has begun. */
  endedAt: Date | null;
}

const NOTE_WORK = `
  UPDATE followed_pull_requests p
  SET idle_since = seen.ended_at, next_look_at = CASE WHEN seen.ended_at IS NULL THEN next_look_at ELSE $4 END
  FROM unnest($1::uuid[], $2::int[], $3::timestamptz[]) AS seen (id, attempt, ended_at)
  WHERE p.conversation_id = seen.id AND p.attempt = seen.attempt AND p.next_look_at IS NOT NULL`;

/** Looks of one user at a time: as many as one question to a host may be about. */
export const LOOKS_OF_A_USER = 50;

/** `next_look_at` and `attempt` are its `due_at` and `attempts`: the release before this one writes them. */
const LEASED: LeasedTable = {
  table: 'followed_pull_requests',
  key: { column: 'conversation_id', type: 'uuid' },
  columns: { due_at: 'next_look_at', attempts: 'attempt' },
  owner: 'r.user_id',
  condition: `r.next_look_at IS NOT NULL AND ${mayAct('r.user_id')}`,
  channel: 'followed_pull_requests',
};

const SHA_DIGITS = 12;

/** Names of repositories have no case at any host, and some shorten commits. In one order, so that two events never wait for each other. */
const WAKE = `
  UPDATE followed_pull_requests SET next_look_at = $2 WHERE conversation_id IN (
    SELECT conversation_id FROM followed_pull_requests
    WHERE user_id = $1 AND next_look_at IS NOT NULL AND lower(repository) = lower($3)
      AND (number IS NULL OR number = ANY ($4::int[]) OR left(head_sha, ${SHA_DIGITS}) = ANY ($5::text[]))
    ORDER BY conversation_id FOR UPDATE)`;

/** The database's time in milliseconds, which is as precise as a Date. */
const NOW = (): string => `date_trunc('milliseconds', now())`;

const IS_PENDING = 'SELECT EXISTS (SELECT FROM pending_messages WHERE id = $1) AS found';

@Injectable()
export class FollowedPullRequestRepository extends Repository<FollowedPullRequest> {
  private readonly leases: LeasedRows;

  constructor(
    dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    super(FollowedPullRequest, dataSource.manager);
    this.leases = new LeasedRows(dataSource, clock, LEASED);
  }

  /** Follows what a start asks for, in the transaction of its conversation. Repeatable. */
  async open(manager: EntityManager, { appConversationId, userId, request }: StartTask): Promise<void> {
    const { follow: wishes, initial_message: message } = request;
    if (wishes) {
      await manager
        .createQueryBuilder()
        .insert()
        .into(FollowedPullRequest)
        .values({
          conversationId: appConversationId,
          userId,
          wishes,
          repository: request.selected_repository,
          state: 'watching',
          idleSince: message === null ? NOW : null,
          nextLookAt: NOW,
        })
        .orIgnore()
        .execute();
    }
  }

  /** Makes the next look due now if the work has ended. Leaves rows at which a look has begun meanwhile. */
  async noteWork(changed: readonly NotedWork[], now: Date): Promise<void> {
    if (changed.length > 0) {
      const column = <Name extends keyof NotedWork>(name: Name): NotedWork[Name][] =>
        changed.map((each) => each[name]);
      await this.query(NOTE_WORK, [column('id'), column('attempt'), column('endedAt'), now]);
    }
  }

  /** Those that are due, without those that another replica looks at. */
  async claim(leaseMs: number, limit: number): Promise<Taken<FollowedPullRequest>> {
    const { rows, nextAt } = await this.leases.take({ limit, share: LOOKS_OF_A_USER, leaseMs, held: [] });
    const where = rows.map(({ id }) => ({ conversationId: id }));
    return {
      rows: where.length === 0 ? [] : await this.find({ where, order: { createdAt: 'ASC' } }),
      nextAt,
    };
  }

  /** Whether one of the conversations has worked on its pull request since then, or does. */
  async wereAtWork(conversationIds: readonly string[], since: Date): Promise<boolean> {
    const conversationId = In(conversationIds);
    return this.existsBy([
      { conversationId, idleSince: MoreThanOrEqual(since) },
      { conversationId, idleSince: IsNull(), nextLookAt: Not(IsNull()) },
    ]);
  }

  /** Makes those due that an event tells of. */
  async wake(userId: string, { repository, numbers, shas }: ToldChangeRequest): Promise<void> {
    const commits = shas.map((sha) => sha.slice(0, SHA_DIGITS));
    await this.query(WAKE, [userId, new Date(this.clock.now()), repository, numbers, commits]);
  }

  /** Ends a look, unless another one has begun; one that was woken meanwhile is looked at again. */
  async settle(
    manager: EntityManager,
    { conversationId, attempt, nextLookAt: seen }: FollowedPullRequest,
    change: FollowChange,
    nextLookAt: Date | null,
  ): Promise<boolean> {
    const { affected } = await manager
      .createQueryBuilder()
      .update(FollowedPullRequest)
      .set({
        ...change,
        leasedBy: null,
        leasedUntil: null,
        nextLookAt:
          nextLookAt === null
            ? null
            : () => 'CASE WHEN next_look_at = :seen THEN :next::timestamptz ELSE next_look_at END',
      })
      .where({ conversationId, attempt })
      .setParameters({ seen, next: nextLookAt })
      .execute();
    return affected === 1;
  }

  /** Takes the next comment that is to be answered; what was taken is never answered again. */
  async takeUnanswered({ conversationId, attempt }: FollowedPullRequest): Promise<AnsweredComment | null> {
    return this.manager.transaction(async (manager) => {
      const where = { conversationId, attempt };
      const row = await manager.findOne(FollowedPullRequest, { where, lock: { mode: 'pessimistic_write' } });
      const [next, ...others] = row?.unanswered ?? [];
      if (next === undefined) {
        return null;
      }
      await manager.update(FollowedPullRequest, where, { unanswered: others });
      return next;
    });
  }

  /** Whether the agent has not got its message yet. */
  async isPending(messageId: string): Promise<boolean> {
    const [row] = await this.query<{ found: boolean }[]>(IS_PENDING, [messageId]);
    return row?.found === true;
  }
}
