import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Content } from '../../../agent-protocol/events.js';
import { User } from '../../../auth/user.entity.js';

/** A message that waits until its conversation is ready. Its row goes once the agent server has it. */
@Entity('pending_messages')
@Index('pending_messages_conversation_id_position_key', ['conversationId', 'position'], { unique: true })
export class PendingMessage {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pending_messages_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'pending_messages_user_id_fkey' })
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

  /** Nobody tries before this: somebody is at it, or failed a moment ago. */
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
