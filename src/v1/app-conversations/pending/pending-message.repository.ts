import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Column,
  CreateDateColumn,
  Entity,
  type EntityManager,
  Index,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import type { Content } from '@slipway/agent-protocol/events.js';
import { OwnedRow } from '../../../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { type Lease, LeasedRows, type LeasedTable } from '@slipway/database/leased-rows.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { joinSandbox } from '../../sandboxes/sandbox.queries.js';
import { isStored, joinConversation } from '../conversation.queries.js';
import { hasUnfinishedStart, mayGoOn } from '../start-task.queries.js';

/** Removed once the agent server has it. */
@Entity('pending_messages')
@Index('pending_messages_conversation_id_position_key', ['conversationId', 'position'], { unique: true })
@Index('pending_messages_user_id_idx', ['userId'])
@Index('pending_messages_leased_idx', ['leasedUntil'], { where: 'leased_until IS NOT NULL' })
export class PendingMessage extends OwnedRow {
  @PrimaryColumn('uuid') id: string;

  /** Chosen with the start, before there is a conversation. */
  @Column('uuid') conversationId: string;

  /** Order of delivery. */
  @Column('integer') position: number;
  @Column('jsonb') content: Content[];

  @Column('integer', { default: 0 }) attempts: number;
  @Column('timestamptz', { default: () => 'now()' }) dueAt: Date;
  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;

  /** Last event before the first attempt: retries search the log after it. Empty for an empty log. */
  @Column('text', { nullable: true }) afterEventId: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
}

const CHANNEL = 'pending_messages';

const ADD = `
  WITH added AS (
    INSERT INTO pending_messages (id, user_id, conversation_id, position, content, due_at)
    SELECT $1, $2, $3, coalesce(max(position), 0) + 1, $4::jsonb, $5 FROM pending_messages WHERE conversation_id = $3)
  SELECT pg_notify('${CHANNEL}', '')`;

/** At a time; the next look finds the rest. */
export const MAX_DELIVERABLE = 200;

/** First messages only: the others wait for it, and a conversation whose first one is postponed must not displace others. */
const DELIVERABLE = `
  SELECT p.id, p.user_id AS owner, p.due_at
  FROM pending_messages p
  ${joinConversation('p.conversation_id')}
  ${joinSandbox('c')}
  WHERE s.host_id = $8 AND s.status = 'RUNNING' AND c.sandbox_generation = s.generation
    AND ${mayGoOn('c')}
    AND NOT EXISTS (
      SELECT FROM pending_messages earlier
      WHERE earlier.conversation_id = p.conversation_id AND earlier.position < p.position)
  ORDER BY p.due_at
  LIMIT ${MAX_DELIVERABLE}`;

/** Messages for running sandboxes of a host, of each conversation the first. */
export function messagesFor(hostId: string): LeasedTable {
  return {
    table: 'pending_messages',
    key: { column: 'id', type: 'uuid' },
    owner: 'r.user_id',
    condition: 'true',
    candidates: DELIVERABLE,
    values: [hostId],
    returning:
      'r.user_id AS "userId", r.conversation_id AS "conversationId", r.content, r.after_event_id AS "afterEventId"',
    channel: CHANNEL,
  };
}

const ORPHANS_BATCH = 1_000;
export const FIRST_MESSAGE_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Removes messages of failed starts and deleted conversations, in batches: those for paused sandboxes may be many and wait
 * long.
 */
const REMOVE_ORPHANS = `
  WITH seen AS MATERIALIZED (
    SELECT id, conversation_id FROM pending_messages WHERE id > $1 ORDER BY id LIMIT ${ORPHANS_BATCH}),
  removed AS (
    DELETE FROM pending_messages WHERE id = ANY (ARRAY(
      SELECT p.id FROM seen p
      WHERE NOT ${isStored('p.conversation_id')}
        AND NOT ${hasUnfinishedStart('p.conversation_id')})))
  SELECT id FROM seen ORDER BY id OFFSET ${ORPHANS_BATCH - 1}`;

export interface DueMessage
  extends Lease, Pick<PendingMessage, 'userId' | 'conversationId' | 'content' | 'afterEventId'> {}

@Injectable()
export class PendingMessageRepository {
  readonly leases: LeasedRows<DueMessage>;

  constructor(
    @InjectRepository(PendingMessage) private readonly messages: Repository<PendingMessage>,
    private readonly clock: Clock,
    host: HostIdentity,
  ) {
    this.leases = new LeasedRows(messages.manager.connection, clock, messagesFor(host.id));
  }

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.messages.manager.transaction(work);
  }

  async count(manager: EntityManager, conversationId: string): Promise<number> {
    return manager.countBy(PendingMessage, { conversationId });
  }

  async countOfUser(manager: EntityManager, userId: string): Promise<number> {
    return manager.countBy(PendingMessage, { userId });
  }

  /** Appends a message. The caller has locked the user. */
  async add(
    manager: EntityManager,
    message: { id: string; userId: string; conversationId: string; content: Content[] },
  ): Promise<void> {
    const { id, userId, conversationId, content } = message;
    const now = new Date(this.clock.now());
    await manager.query(ADD, [id, userId, conversationId, JSON.stringify(content), now]);
  }

  /** An empty id stands for an empty log. False when another process has the message by now. */
  async noteBeginning({ id, leasedBy }: Lease, lastEventId: string): Promise<boolean> {
    const { affected } = await this.messages.update({ id, leasedBy }, { afterEventId: lastEventId });
    return affected === 1;
  }

  /** False when another process has the message by now. */
  async remove({ id, leasedBy }: Lease): Promise<boolean> {
    const { affected } = await this.messages.delete({ id, leasedBy });
    return affected === 1;
  }

  /** Looks for orphans after an id, removes them, and returns where the next batch begins. */
  async removeOrphans(after: string): Promise<string> {
    const [last] = await this.messages.query<{ id: string }[]>(REMOVE_ORPHANS, [after]);
    return last?.id ?? FIRST_MESSAGE_ID;
  }
}
