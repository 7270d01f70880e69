import { Column, Entity, Index, UpdateDateColumn } from 'typeorm';
import type { ProviderType } from '../../git-providers/git-provider.js';
import type { TaskType } from '../../suggested-tasks/candidate.js';
import type { FollowWishes } from '../../v1/app-conversations/followed/followed-pull-request.entity.js';
import { RowOfOwner } from '../current-owner.js';
import type { AutomationLimits } from '../runs/run-admission.js';
import type { AutomationRepo } from './automation-repo.js';
import type { Trigger } from './trigger.dto.js';

export const AUTOMATION_STATES = ['ACTIVE', 'INACTIVE'] as const;
export type AutomationState = (typeof AUTOMATION_STATES)[number];

export interface TaskChoice {
  task_types: TaskType[] | null;
  providers: ProviderType[] | null;
  limit: number;
}

/** What a run does, with its usual values. Members are named as on the wire. */
const USUAL_WORK = {
  /** Null: the most pressing suggested tasks are started. */
  prompt: null as string | null,
  tasks: null as TaskChoice | null,
  model: null as string | null,
  repos: [] as AutomationRepo[],
  /** Seconds; null: as long as it takes. */
  timeout: null as number | null,
  keep_alive: null as boolean | null,
  result_schema: null as object | null,
  secret_names: null as string[] | null,
  agent: null as string | null,
  /** USD. */
  max_budget_per_run: null as number | null,
  follow: null as FollowWishes | null,
  template: null as { id: string; version: string; config: object | null } | null,
};

export type AutomationWork = typeof USUAL_WORK;

@Entity('automations')
@Index('automations_owner_idx', ['userId', 'orgId', 'createdAt', 'id'])
@Index('automations_due_idx', ['nextRunAt'], { where: `state = 'ACTIVE'::text AND next_run_at IS NOT NULL` })
@Index('automations_source_idx', ['orgId', 'eventSource'], { where: 'event_source IS NOT NULL' })
export class Automation extends RowOfOwner {
  @Column('text') name: string;
  @Column('text', { nullable: true }) description: string | null = null;
  @Column('text') state: AutomationState = 'ACTIVE';
  @Column('jsonb') trigger: Trigger;
  @Column('text', { name: 'event_source', nullable: true }) eventSource: string | null;
  /** Null without a schedule, or while it is not active. */
  @Column('timestamptz', { name: 'next_run_at', nullable: true }) nextRunAt: Date | null;
  @Column('jsonb') work: AutomationWork = USUAL_WORK;
  @Column('jsonb') limits: AutomationLimits = { maxRunsPerDay: 100, limit: 1, whenBusy: 'queue' };
  @Column('text', { array: true, default: () => "'{}'" }) tags: string[] = [];
  @Column('timestamptz', { name: 'last_triggered_at', nullable: true }) lastTriggeredAt: Date | null;
  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' }) updatedAt: Date;
}
