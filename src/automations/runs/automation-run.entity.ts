import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { SuggestedTask } from '../../v1/app-conversations/suggested-task/suggested-task-prompt.js';
import { Automation, type AutomationWork } from '../definitions/automation.entity.js';

export const RUN_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED'] as const;
export const RUN_TRIGGERS = ['cron', 'event', 'manual'] as const;

/** One occasion on which an automation works. The row is made with its cause, and never twice. */
@Entity('automation_runs')
@Index('automation_runs_cause_key', ['automationId', 'cause'], { unique: true })
@Index('automation_runs_list_idx', ['automationId', 'createdAt', 'id'])
@Index('automation_runs_active_idx', ['automationId', 'status'], {
  where: `status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])`,
})
@Index('automation_runs_stop_idx', ['createdAt'], { where: 'stop_pending' })
@Index('automation_runs_created_at_idx', ['createdAt'])
export class AutomationRun {
  @PrimaryColumn('uuid') id: string;
  @Column('uuid', { name: 'automation_id' }) automationId: string;

  @ManyToOne(() => Automation, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'automation_id' })
  automation?: Automation;

  @Column('uuid', { name: 'user_id' }) userId: string;
  /** Id of the delivery, scheduled minute, or the dispatch's `Idempotency-Key`, with the kind in front. */
  @Column('text') cause: string;
  @Column('text', { name: 'trigger_source' }) triggerSource: (typeof RUN_TRIGGERS)[number];
  @Column('text') status: (typeof RUN_STATUSES)[number];
  /** As the automation was then, with a prompt whose placeholders are filled. */
  @Column('jsonb') work: AutomationWork;
  /** Chosen before the first of them is started. */
  @Column('uuid', { name: 'conversation_ids', array: true, default: () => "'{}'" }) conversationIds: string[];
  /** Null until all conversations are being started. */
  @Column('uuid', { name: 'start_task_ids', array: true, nullable: true }) startTaskIds: string[] | null;
  /** Suggested tasks that it works on; null until they are chosen, or with a prompt. */
  @Column('jsonb', { nullable: true }) tasks: SuggestedTask[] | null;
  /** It is over, and its conversations are still to be paused. */
  @Column('boolean', { name: 'stop_pending', default: false }) stopPending: boolean;
  @Column('text', { name: 'error_detail', nullable: true }) errorDetail: string | null;
  /** USD, when it is over. */
  @Column('double precision', { nullable: true }) cost: number | null;
  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' }) createdAt: Date;
  @Column('timestamptz', { name: 'started_at', nullable: true }) startedAt: Date | null;
  @Column('timestamptz', { name: 'completed_at', nullable: true }) completedAt: Date | null;
}
