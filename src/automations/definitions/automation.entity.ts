import { Column, Entity, Index, UpdateDateColumn } from 'typeorm';
import type { ProviderType } from '../../git-providers/git-provider.js';
import type { TaskType } from '../../suggested-tasks/candidate.js';
import type { FollowWishes } from '../../v1/app-conversations/followed/followed-pull-request.entity.js';
import { RowOfOwner } from '../owned.repository.js';
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

/** What a run does. Members are named as on the wire. */
export class AutomationWork {
  /** Null: the most pressing suggested tasks are started. */
  prompt: string | null = null;
  tasks: TaskChoice | null = null;
  model: string | null = null;
  repos: AutomationRepo[] = [];
  /** Seconds; null: as long as it takes. */
  timeout: number | null = null;
  keep_alive: boolean | null = null;
  result_schema: object | null = null;
  secret_names: string[] | null = null;
  agent: string | null = null;
  /** USD. */
  max_budget_per_run: number | null = null;
  /** Absent in older rows, as null. */
  follow?: FollowWishes | null = null;
  template: { id: string; version: string; config: object | null } | null = null;
}

@Entity('automations')
@Index('automations_owner_idx', ['userId', 'orgId', 'createdAt', 'id'])
@Index('automations_due_idx', ['nextRunAt'], { where: `state = 'ACTIVE'::text AND next_run_at IS NOT NULL` })
@Index('automations_source_idx', ['orgId', 'eventSource'], { where: 'event_source IS NOT NULL' })
export class Automation extends RowOfOwner {
  @Column('text') name: string;
  @Column('text', { nullable: true }) description: string | null;
  @Column('text') state: AutomationState;
  @Column('jsonb') trigger: Trigger;
  @Column('text', { name: 'event_source', nullable: true }) eventSource: string | null;
  /** Null without a schedule, or while it is not active. */
  @Column('timestamptz', { name: 'next_run_at', nullable: true }) nextRunAt: Date | null;
  @Column('jsonb') work: AutomationWork;
  @Column('jsonb') limits: AutomationLimits;
  @Column('text', { array: true, default: () => "'{}'" }) tags: string[];
  @Column('timestamptz', { name: 'last_triggered_at', nullable: true }) lastTriggeredAt: Date | null;
  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' }) updatedAt: Date;
}
