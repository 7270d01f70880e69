import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { FollowedConversation } from './followed-conversation.entity.js';

/**
 * One event of a conversation, as its agent server wrote it. The table has partitions, of which TypeORM knows nothing: each has
 * the keys that are named here.
 */
@Entity('conversation_events', { synchronize: false })
@Index('conversation_events_conversation_id_event_id_key', ['conversationId', 'eventId'], { unique: true })
export class ConversationEvent {
  @PrimaryColumn('uuid', {
    name: 'conversation_id',
    primaryKeyConstraintName: 'conversation_events_pkey',
  })
  conversationId: string;

  @ManyToOne(() => FollowedConversation, { onDelete: 'CASCADE' })
  @JoinColumn({
    name: 'conversation_id',
    foreignKeyConstraintName: 'conversation_events_conversation_id_fkey',
  })
  conversation?: FollowedConversation;

  /** 1, 2, 3 … within the conversation, in the order of the agent server's log. */
  @PrimaryColumn('integer', { primaryKeyConstraintName: 'conversation_events_pkey' })
  seq: number;

  @Column('text', { name: 'event_id' })
  eventId: string;

  @Column('text')
  kind: string;

  /** The event's own timestamp, which is UTC. */
  @Column('timestamptz', { name: 'occurred_at' })
  occurredAt: Date;

  /** When the service stored it, by the clock of the database; decides about the partition. */
  @CreateDateColumn({ name: 'stored_at', type: 'timestamptz' })
  storedAt: Date;

  /** The event as it came: `json`, so that members keep their order. */
  @Column('json')
  body: AgentEvent;
}
