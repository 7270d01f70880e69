import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import type { ConversationStatus, MetricsSnapshot } from '../../agent-protocol/conversation.js';
import { User } from '../../auth/user.repository.js';

/** What the service knows about a conversation at its agent server, and how far its log was read. */
@Entity('followed_conversations')
@Index('followed_conversations_sandbox_id_idx', ['sandboxId'])
@Index('followed_conversations_user_id_idx', ['userId'])
export class FollowedConversation {
  /** Id of the conversation. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'followed_conversations_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'followed_conversations_user_id_fkey' })
  user?: User;

  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  /** As the agent server last reported it; meaningful only while the sandbox runs. */
  @Column('text', { name: 'execution_status', nullable: true })
  executionStatus: ConversationStatus | null;

  @Column('jsonb', { nullable: true })
  metrics: MetricsSnapshot | null;

  /** The title that the agent server gave it. */
  @Column('text', { nullable: true })
  title: string | null;

  /** What the agent last finished with, where a result was asked for. */
  @Column('jsonb', { nullable: true })
  result: object | string | number | boolean | null;

  /** The `seq` of the last event: so many were stored, of which the first ones may have outlived their retention. */
  @Column('integer', { name: 'event_count', default: 0 })
  eventCount: number;

  @Column('text', { name: 'last_event_id', nullable: true })
  lastEventId: string | null;

  /** None of its events was stored before. */
  @CreateDateColumn({ name: 'opened_at', type: 'timestamptz' })
  openedAt: Date;

  /** The process that follows the log, and until when its lease holds. */
  @Column('text', { nullable: true })
  follower: string | null;

  @Column('timestamptz', { name: 'follower_until', nullable: true })
  followerUntil: Date | null;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
