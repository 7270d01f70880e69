import { Column, CreateDateColumn, Entity, Index, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { FollowedComment, ProviderType } from '@slipway/git-providers/git-provider.js';
import { AppConversation } from '../conversation.entity.js';

export const FOLLOW_GOALS = ['green', 'approved', 'merged'] as const;
export type FollowGoal = (typeof FOLLOW_GOALS)[number];

export const FOLLOW_STATES = ['watching', 'working', 'reached', 'gave_up', 'stopped'] as const;
export type FollowState = (typeof FOLLOW_STATES)[number];

export const MAX_ROUNDS = 20;

/** Named as on the wire. */
export interface FollowWishes {
  checks: boolean;
  reviews: boolean;
  conflicts: boolean;
  max_rounds: number;
  until: FollowGoal;
}

/** What has woken the agent, or never may: ids of the host. */
export interface KnownOfPullRequest {
  checks: string[];
  comments: string[];
  /** Comments of the account itself while the agent worked, and notices, for the text of the next round. */
  aside: string[];
  /** Commit whose conflict the agent was told of, until there is none. */
  conflictOf: string | null;
  /** The last look did not find it. */
  missing: boolean;
  /** Round in which the sandbox, having failed at that time, was started again. */
  restart: { round: number; failedAt: string } | null;
  /** Round that was begun for nothing but comments that may be the agent's own. */
  doubted: number | null;
}

export type AnsweredComment = Pick<FollowedComment, 'id' | 'threadId'>;

export const NOTHING_KNOWN: KnownOfPullRequest = {
  checks: [],
  comments: [],
  aside: [],
  conflictOf: null,
  missing: false,
  restart: null,
  doubted: null,
};

/** A conversation's pull request that is followed; the row is made with the conversation, before there is one. */
@Entity('followed_pull_requests')
@Index('followed_pull_requests_due_idx', ['nextLookAt'], { where: 'next_look_at IS NOT NULL' })
@Index('followed_pull_requests_leased_idx', ['leasedUntil'], { where: 'leased_until IS NOT NULL' })
@Index('followed_pull_requests_user_id_idx', ['userId', 'repository'])
export class FollowedPullRequest {
  @PrimaryColumn('uuid') conversationId: string;

  @OneToOne(() => AppConversation, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'conversation_id' })
  conversation?: AppConversation;

  @Column('uuid') userId: string;
  @Column('jsonb') wishes: FollowWishes;
  @Column('text') state: FollowState;
  @Column('integer', { default: 0 }) round: number;
  @Column('text', { nullable: true }) reason: string | null;

  /** The conversation's provider when its pull request was found. */
  @Column('text', { nullable: true }) provider: ProviderType | null;

  /** Until there is one, that of the start. */
  @Column('text', { nullable: true }) repository: string | null;

  /** The pull request's number; null until the conversation has one. */
  @Column('integer', { nullable: true }) number: number | null;
  @Column('text', { nullable: true }) url: string | null;

  /** The head that was last read. */
  @Column('text', { nullable: true }) headSha: string | null;
  @Column('jsonb', { default: () => "'{}'" }) known: Partial<KnownOfPullRequest>;

  /** The pending message of the last round: gone once the agent has it. */
  @Column('uuid', { nullable: true }) messageId: string | null;

  /** Comments of this round without an answer yet, one of each thread. */
  @Column('jsonb', { default: () => "'[]'" }) unanswered: AnsweredComment[];

  /** Since when the agent has been idle; null while it works, or is about to. */
  @Column('timestamptz', { nullable: true }) idleSince: Date | null;

  /** When it is looked at next; null once following has ended. */
  @Column('timestamptz', { nullable: true }) nextLookAt: Date | null;
  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;

  /** Counts leases: who lost one must not change the row any more. */
  @Column('integer', { default: 0 }) attempt: number;

  /** Since the host was last read. */
  @Column('integer', { default: 0 }) failures: number;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
}

/** Named as on the wire. */
export interface FollowRow {
  state: FollowState;
  round: number;
  reason: string | null;
  pull_request: { repository: string; number: number; url: string | null } | null;
}
