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
import { joinSandbox } from '../../sandboxes/sandbox.queries.js';
import { hasUnfinishedStart, mayGoOn } from '../start-task.queries.js';

/** Removed once the agent server has it. */
@Entity('pending_messages')
@Index('pending_messages_conversation_id_position_key', ['conversationId', 'position'], { unique: true })
@Index('pending_messages_user_id_idx', ['userId'])
export class PendingMessage extends OwnedRow {
  @PrimaryColumn('uuid') id: string;

  /** Chosen with the start, before there is a conversation. */
  @Column('uuid') conversationId: string;

  /** Order of delivery. */
  @Column('integer') position: number;
  @Column('jsonb') content: Content[];

  /** Includes the current attempt. */
  @Column('integer', { default: 0 }) attempts: number;

  /** A delivery is under way or has just failed until then. */
  @Column('timestamptz', { default: () => 'now()' }) dueAt: Date;

  /** Last event before the first attempt: retries search the log after it. Empty for an empty log. */
  @Column('text', { nullable: true }) afterEventId: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
}

/** Longer than a delivery takes; then another process takes over. */
const CLAIM = `interval '2 minutes'`;

const ADD = `
  INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
  SELECT $1, $2, $3, coalesce(max(position), 0) + 1, $4::jsonb FROM pending_messages WHERE conversation_id = $3`;

/** The next sweep finds the rest. */
const MAX_DELIVERABLE = 200;

/** First messages only: a conversation whose first one is postponed must not displace others. */
const DELIVERABLE = `
  SELECT c.id, c.user_id AS "userId"
  FROM pending_messages p
  JOIN app_conversations c ON c.id = p.conversation_id
  ${joinSandbox('c')}
  WHERE s.host_id = $1 AND ($2::uuid IS NULL OR c.id = $2)
    AND s.status = 'RUNNING' AND c.sandbox_generation = s.generation
    AND p.due_at <= now() AND ${mayGoOn('c')}
    AND NOT EXISTS (
      SELECT FROM pending_messages earlier
      WHERE earlier.conversation_id = p.conversation_id AND earlier.position < p.position)
  ORDER BY p.due_at
  LIMIT ${MAX_DELIVERABLE}`;

/** The others wait for the first one. Of two concurrent claims, the second finds it not due. */
const CLAIM_FIRST = `
  UPDATE pending_messages SET attempts = attempts + 1, due_at = now() + ${CLAIM}
  WHERE due_at <= now() AND id = (
    SELECT id FROM pending_messages WHERE conversation_id = $1 ORDER BY position LIMIT 1)
  RETURNING id, content, attempts, after_event_id AS "afterEventId"`;

const POSTPONE = `
  UPDATE pending_messages SET due_at = now() + make_interval(secs => $2) WHERE id = $1`;

const ORPHANS_BATCH = 1_000;
export const FIRST_MESSAGE_ID = '00000000-0000-0000-0000-000000000000';

/** For failed starts and deleted conversations. Messages for paused sandboxes may be many, and wait for long. */
const REMOVE_ORPHANS = `
  WITH seen AS MATERIALIZED (
    SELECT id, conversation_id FROM pending_messages WHERE id > $1 ORDER BY id LIMIT ${ORPHANS_BATCH}),
  removed AS (
    DELETE FROM pending_messages WHERE id = ANY (ARRAY(
      SELECT p.id FROM seen p
      WHERE NOT EXISTS (SELECT FROM app_conversations c WHERE c.id = p.conversation_id)
        AND NOT ${hasUnfinishedStart('p.conversation_id')})))
  SELECT id FROM seen ORDER BY id OFFSET ${ORPHANS_BATCH - 1}`;

export type ClaimedMessage = Pick<PendingMessage, 'id' | 'content' | 'attempts' | 'afterEventId'>;

@Injectable()
export class PendingMessageRepository {
  constructor(@InjectRepository(PendingMessage) private readonly messages: Repository<PendingMessage>) {}

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
    await manager.query(ADD, [id, userId, conversationId, JSON.stringify(content)]);
  }

  /** Up to a few hundred conversations of a host (or one of them) with a message to deliver, the longest due first. */
  async deliverable(
    hostId: string,
    conversationId: string | null,
  ): Promise<{ id: string; userId: string }[]> {
    return this.messages.query<{ id: string; userId: string }[]>(DELIVERABLE, [hostId, conversationId]);
  }

  /** Null when there is no message, or another worker has it. */
  async claimFirst(conversationId: string): Promise<ClaimedMessage | null> {
    const [[row]] = await this.messages.query<[ClaimedMessage[], number]>(CLAIM_FIRST, [conversationId]);
    return row ?? null;
  }

  /** An empty id stands for an empty log. */
  async noteBeginning(id: string, lastEventId: string): Promise<void> {
    await this.messages.update({ id }, { afterEventId: lastEventId });
  }

  async postpone(id: string, seconds: number): Promise<void> {
    await this.messages.query(POSTPONE, [id, seconds]);
  }

  async remove(id: string): Promise<void> {
    await this.messages.delete({ id });
  }

  /** Looks for orphans after an id, removes them, and returns where the next batch begins. */
  async removeOrphans(after: string): Promise<string> {
    const [last] = await this.messages.query<{ id: string }[]>(REMOVE_ORPHANS, [after]);
    return last?.id ?? FIRST_MESSAGE_ID;
  }
}
