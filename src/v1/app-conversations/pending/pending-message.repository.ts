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
import { OwnedByUser, User } from '../../../auth/user.repository.js';
import { joinSandbox } from '../../sandboxes/sandbox.queries.js';
import { hasUnfinishedStart } from '../start-task.queries.js';

/** A message that waits until its conversation is ready. Its row goes once the agent server has it. */
@Entity('pending_messages')
@Index('pending_messages_conversation_id_position_key', ['conversationId', 'position'], { unique: true })
@Index('pending_messages_user_id_idx', ['userId'])
export class PendingMessage {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
  user?: User;

  /** Chosen with the start, so that it is known before there is a conversation. */
  @Column('uuid', { name: 'conversation_id' })
  conversationId: string;

  /** Messages of a conversation are delivered in this order. */
  @Column('integer')
  position: number;

  @Column('jsonb')
  content: Content[];

  /** Attempts to deliver it, the current one included. */
  @Column('integer', { default: 0 })
  attempts: number;

  /** No attempt is made before this time: a delivery is under way, or one failed a moment ago. */
  @Column('timestamptz', { name: 'due_at', default: () => 'now()' })
  dueAt: Date;

  /**
   * The last event of the log before the first attempt: behind it, whoever tries again looks whether the message has
   * arrived. Null before that attempt, empty when the log was.
   */
  @Column('text', { name: 'after_event_id', nullable: true })
  afterEventId: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}

/** Longer than a delivery takes; after this, another process takes over from one that died. */
const CLAIM = `interval '2 minutes'`;

const ADD = `
  INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
  SELECT $1, $2, $3, coalesce(max(position), 0) + 1, $4::jsonb FROM pending_messages WHERE conversation_id = $3`;

/** Conversations found by one statement; the next sweep finds the rest. */
const MAX_DELIVERABLE = 200;

/** Only first messages count: a conversation whose first one is postponed would take the place of others. */
const DELIVERABLE = `
  SELECT c.id, c.user_id
  FROM pending_messages p
  JOIN app_conversations c ON c.id = p.conversation_id
  ${joinSandbox('c')}
  WHERE s.host_id = $1 AND ($2::uuid IS NULL OR c.id = $2)
    AND s.status = 'RUNNING' AND c.sandbox_generation = s.generation
    AND p.due_at <= now() AND NOT ${hasUnfinishedStart('c.id')}
    AND NOT EXISTS (
      SELECT FROM pending_messages earlier
      WHERE earlier.conversation_id = p.conversation_id AND earlier.position < p.position)
  ORDER BY p.due_at
  LIMIT ${MAX_DELIVERABLE}`;

/** The first one only: the others wait for it. Of two claims at once the second finds it not due any more. */
const CLAIM_FIRST = `
  UPDATE pending_messages SET attempts = attempts + 1, due_at = now() + ${CLAIM}
  WHERE due_at <= now() AND id = (
    SELECT id FROM pending_messages WHERE conversation_id = $1 ORDER BY position LIMIT 1)
  RETURNING id, content, attempts, after_event_id AS "afterEventId"`;

const NOTE_BEGINNING = 'UPDATE pending_messages SET after_event_id = $2 WHERE id = $1';

const POSTPONE = `
  UPDATE pending_messages SET due_at = now() + make_interval(secs => $2) WHERE id = $1`;

/** Messages that one statement looks at. */
const ORPHANS_BATCH = 1_000;
/** Sorts before any id. */
export const FIRST_MESSAGE_ID = '00000000-0000-0000-0000-000000000000';

/** Of starts that failed and of conversations that were deleted. Messages for paused sandboxes may be many, and wait for long. */
const REMOVE_ORPHANS = `
  WITH seen AS MATERIALIZED (
    SELECT id, conversation_id FROM pending_messages WHERE id > $1 ORDER BY id LIMIT ${ORPHANS_BATCH}),
  removed AS (
    DELETE FROM pending_messages WHERE id = ANY (ARRAY(
      SELECT p.id FROM seen p
      WHERE NOT EXISTS (SELECT FROM app_conversations c WHERE c.id = p.conversation_id)
        AND NOT ${hasUnfinishedStart('p.conversation_id')})))
  SELECT id FROM seen ORDER BY id OFFSET ${ORPHANS_BATCH - 1}`;

/** A message that is being delivered. */
export type ClaimedMessage = Pick<PendingMessage, 'id' | 'content' | 'attempts' | 'afterEventId'>;

/** Rows of messages that wait for their conversations. */
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

  /** Adds a message behind the others. The caller has locked the user. */
  async add(
    manager: EntityManager,
    message: { id: string; userId: string; conversationId: string; content: Content[] },
  ): Promise<void> {
    const { id, userId, conversationId, content } = message;
    await manager.query(ADD, [id, userId, conversationId, JSON.stringify(content)]);
  }

  /**
   * Conversations with a message that can be delivered now, the longest due first; not more than a few hundred.
   *
   * @param hostId whose sandboxes
   * @param conversationId null: all of them
   */
  async deliverable(
    hostId: string,
    conversationId: string | null,
  ): Promise<{ id: string; userId: string }[]> {
    const rows = await this.messages.query<{ id: string; user_id: string }[]>(DELIVERABLE, [
      hostId,
      conversationId,
    ]);
    return rows.map(({ id, user_id: userId }) => ({ id, userId }));
  }

  /** Claims the first message of a conversation for a delivery; null: there is none, or another worker has it. */
  async claimFirst(conversationId: string): Promise<ClaimedMessage | null> {
    const [[row]] = await this.messages.query<[ClaimedMessage[], number]>(CLAIM_FIRST, [conversationId]);
    return row ?? null;
  }

  /** Notes the last event before the first attempt; empty: there was none. */
  async noteBeginning(id: string, lastEventId: string): Promise<void> {
    await this.messages.query(NOTE_BEGINNING, [id, lastEventId]);
  }

  async postpone(id: string, seconds: number): Promise<void> {
    await this.messages.query(POSTPONE, [id, seconds]);
  }

  async remove(id: string): Promise<void> {
    await this.messages.delete({ id });
  }

  /**
   * Looks at a batch of messages, and removes those that no conversation will ever take.
   *
   * @param after id of the last message that was looked at
   * @returns behind which id the next batch begins
   */
  async removeOrphans(after: string): Promise<string> {
    const [last] = await this.messages.query<{ id: string }[]>(REMOVE_ORPHANS, [after]);
    return last?.id ?? FIRST_MESSAGE_ID;
  }
}
