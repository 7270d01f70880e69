import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type {
  ConversationFailure,
  ConversationStatus,
  MetricsSnapshot,
} from '@slipway/agent-protocol/conversation-api.js';
import { OwnedRow } from '../../auth/user.repository.js';

/** What the service knows about a conversation at its agent server, and how far its log was read. */
@Entity('followed_conversations')
@Index('followed_conversations_sandbox_id_idx', ['sandboxId'])
@Index('followed_conversations_user_id_idx', ['userId'])
export class FollowedConversation extends OwnedRow {
  @PrimaryColumn('uuid')
  id: string;

  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  /** Last reported by the agent server; meaningful only while the sandbox runs. */
  @Column('text', { name: 'execution_status', nullable: true })
  executionStatus: ConversationStatus | null;

  /** The last error in the log, until the agent does anything but fail. */
  @Column('jsonb', { nullable: true })
  error: ConversationFailure | null;

  @Column('jsonb', { nullable: true })
  metrics: MetricsSnapshot | null;

  @Column('text', { nullable: true })
  title: string | null;

  /** Null unless a result was requested. */
  @Column('jsonb', { nullable: true })
  result: object | string | number | boolean | null;

  /** The `seq` of the last event, so the number of events ever stored; retention may have removed the oldest. */
  @Column('integer', { name: 'event_count', default: 0 })
  eventCount: number;

  @Column('text', { name: 'last_event_id', nullable: true })
  lastEventId: string | null;

  /** When the log was opened; none of its events was stored earlier. */
  @CreateDateColumn({ name: 'opened_at', type: 'timestamptz' })
  openedAt: Date;

  @Column('text', { nullable: true })
  follower: string | null;

  @Column('timestamptz', { name: 'follower_until', nullable: true })
  followerUntil: Date | null;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
