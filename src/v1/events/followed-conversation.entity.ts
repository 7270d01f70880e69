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
@Index('followed_conversations_uncounted_idx', ['id'], { where: 'uncounted_events > 0' })
export class FollowedConversation extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  @Column('text') sandboxId: string;

  /** Last reported by the agent server; meaningful only while the sandbox runs. */
  @Column('text', { nullable: true }) executionStatus: ConversationStatus | null;

  /** The last error in the log, until the agent does anything but fail. */
  @Column('jsonb', { nullable: true }) error: ConversationFailure | null;
  @Column('jsonb', { nullable: true }) metrics: MetricsSnapshot | null;
  @Column('text', { nullable: true }) title: string | null;

  /** The agent's result; null unless one was requested. */
  @Column('jsonb', { nullable: true }) result: object | string | number | boolean | null;

  /** The `seq` of the last event, so the number of events ever stored; retention may have removed the oldest. */
  @Column('integer', { default: 0 }) eventCount: number;

  /** Bytes of the bodies of stored events, as PostgreSQL's text, like all numbers that JavaScript might not hold. */
  @Column('bigint', { default: 0 }) eventBytes: string;

  /** The `seq` up to which events are not counted yet: they were stored before bytes were. */
  @Column('integer', { default: 0 }) uncountedEvents: number;

  /** Events come for which there is no room. */
  @Column('boolean', { default: false }) isFull: boolean;

  /** Messages that no run of the agent has followed, and their bytes. */
  @Column('integer', { default: 0 }) unreadMessages: number;
  @Column('integer', { default: 0 }) unreadBytes: number;
  @Column('text', { nullable: true }) lastEventId: string | null;

  /** When the log was opened; none of its events was stored earlier. */
  @CreateDateColumn({ type: 'timestamptz' }) openedAt: Date;
  @Column('text', { nullable: true }) follower: string | null;
  @Column('timestamptz', { nullable: true }) followerUntil: Date | null;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}
