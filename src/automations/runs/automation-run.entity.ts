import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { SuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import { Automation, type AutomationWork } from '../definitions/automation.repository.js';
import type { RunEvent } from '../events/event-subject.js';

export const RUN_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED'] as const;
export const RUN_TRIGGERS = ['cron', 'event', 'manual'] as const;

const LATER = "(now() + '00:00:15')";

/** One occasion on which an automation works. The row is made with its cause, and never twice. */
@Entity('automation_runs')
@Index('automation_runs_cause_key', ['automationId', 'cause'], { unique: true })
@Index('automation_runs_list_idx', ['automationId', 'createdAt', 'id'])
@Index('automation_runs_active_idx', ['automationId', 'status'], {
  where: `status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])`,
})
@Index('automation_runs_due_idx', ['dueAt'], {
  where: `status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text]) AND start_task_ids IS NULL`,
})
@Index('automation_runs_stop_idx', ['createdAt'], { where: 'stop_pending' })
@Index('automation_runs_created_at_idx', ['createdAt'])
export class AutomationRun {
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') automationId: string;

  @ManyToOne(() => Automation, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'automation_id' })
  automation?: Automation;

  @Column('uuid') userId: string;
  /** Id of the delivery, scheduled minute, or the dispatch's `Idempotency-Key`, with the kind in front. */
  @Column('text') cause: string;
  @Column('text') triggerSource: (typeof RUN_TRIGGERS)[number];
  /** Account of the host that caused it, with its source in front; null where the event names no account. */
  @Column('text', { nullable: true }) actor: string | null;
  /** What it was caused by, for people; null without an event, and in rows of earlier versions. */
  @Column('jsonb', { nullable: true }) event: RunEvent | null;
  @Column('text') status: (typeof RUN_STATUSES)[number];
  /** The automation's work when the run was made, with placeholders filled in; once the run is over, only `timeout`. */
  @Column('jsonb') work: AutomationWork;
  /** Chosen before the first of them is started. */
  @Column('uuid', { array: true, default: () => "'{}'" }) conversationIds: string[];
  /** Start tasks of its conversations; null until all of them have been asked to start. */
  @Column('uuid', { array: true, nullable: true }) startTaskIds: string[] | null;
  /** Suggested tasks that it works on; null until they are chosen, or with a prompt. */
  @Column('jsonb', { nullable: true }) tasks: SuggestedTaskDto[] | null;
  /** It is over, and its conversations are still to be paused. */
  @Column('boolean', { default: false }) stopPending: boolean;
  @Column('text', { nullable: true }) errorDetail: string | null;
  /** USD, when it is over, and its conversations are paused. */
  @Column('double precision', { nullable: true }) cost: number | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @Column('timestamptz', { nullable: true }) startedAt: Date | null;
  @Column('timestamptz', { nullable: true }) completedAt: Date | null;

  /** When there is something to begin. By default later, as the release before this one begins what it makes by a job. */
  @Column('timestamptz', { nullable: true, default: () => LATER }) dueAt: Date | null;
  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;
  @Column('integer', { default: 0 }) attempts: number;

  /** Trace context of the span that made the run due. */
  @Column('text', { nullable: true }) traceparent: string | null;
}

/** What tells how a run goes: a claim of many must not read all that they do. */
export type RunProgress = Pick<
  AutomationRun,
  'id' | 'userId' | 'conversationIds' | 'startTaskIds' | 'stopPending' | 'startedAt'
> & { work: Pick<AutomationWork, 'timeout' | 'max_budget_per_run'> };

/** What entries in the audit name of a run. */
export function causeOf({ id: run_id, cause: event, actor }: AutomationRun): Record<string, string> {
  return { run_id, event, ...(actor !== null && { caused_by: actor }) };
}
