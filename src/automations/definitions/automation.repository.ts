import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  ArrayContains,
  Column,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  IsNull,
  JsonContains,
  Not,
  UpdateDateColumn,
  Raw,
} from 'typeorm';
import type { GitMode } from '@slipway/agent-protocol/git.js';
import { KeyedLimit } from '@slipway/common/async.js';
import { mayAct } from '../../auth/user.repository.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { PausedWithKey } from '../../auth/made-with-key.js';
import { OwnedRepository, type Owner, RowOfOwner } from '../../auth/owned.repository.js';
import { newestPage } from '@slipway/database/page-bytes.js';
import type { FollowWishes } from '../../v1/app-conversations/followed/followed-pull-request.entity.js';
import type { ForkPolicy } from '../../v1/app-conversations/work-places/work-place.js';
import type {
  AutomationState,
  ListAutomationsQueryDto,
  RepoDto,
  TasksDto,
  TemplateDto,
  WhenBusy,
} from './automation.dto.js';
import type { Trigger } from './trigger.dto.js';

export const MAX_AUTOMATIONS = 100;

/** What a run does within which limits, with its usual values. Members are named as on the wire. */
const USUAL_WORK = {
  /** Null: the most pressing suggested tasks are started. */
  prompt: null as string | null,
  tasks: null as TasksDto | null,
  model: null as string | null,
  repos: [] as RepoDto[],
  /** Seconds; null: as long as it takes. */
  timeout: null as number | null,
  keep_alive: null as boolean | null,
  result_schema: null as object | null,
  secret_names: null as string[] | null,
  git: 'write' as GitMode,
  fork: null as ForkPolicy | null,
  agent: null as string | null,
  /** USD. */
  max_budget_per_run: 5 as number | null,
  /** USD of all its runs that were made in one calendar month (UTC). */
  max_budget_per_month: 50 as number | null,
  follow: null as FollowWishes | null,
  template: null as TemplateDto | null,
  max_runs_per_day: 100,
  concurrency: { limit: 1, when_busy: 'queue' as WhenBusy },
};

export type AutomationWork = typeof USUAL_WORK;

@Entity('automations')
@PausedWithKey('automation.update', { state: 'INACTIVE', nextRunAt: null })
@Index('automations_owner_idx', ['userId', 'orgId', 'createdAt', 'id'])
@Index('automations_due_idx', ['nextRunAt'], { where: `state = 'ACTIVE'::text AND next_run_at IS NOT NULL` })
@Index('automations_org_idx', ['orgId'])
export class Automation extends RowOfOwner {
  @Column('text') name: string;
  @Column('text', { nullable: true }) description: string | null = null;
  @Column('text') state: AutomationState = 'ACTIVE';
  @Column('jsonb') trigger: Trigger;
  /** When the schedule starts the next run; null when there is no schedule, or the automation is not active. */
  @Column('timestamptz', { nullable: true }) nextRunAt: Date | null;
  @Column('jsonb') work: AutomationWork = USUAL_WORK;
  @Column('text', { array: true, default: () => "'{}'" }) tags: string[] = [];
  @Column('timestamptz', { nullable: true }) lastTriggeredAt: Date | null;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** What decides whether an event starts it: claims of many must not read all that they do. */
export type TriggeredAutomation = Pick<Automation, 'id' | 'userId' | 'trigger' | 'state'>;

export type AutomationValues = Omit<Automation, keyof RowOfOwner | 'lastTriggeredAt' | 'updatedAt'>;

const TAG_COUNTS = `
  SELECT tag, count(*)::int AS count FROM automations CROSS JOIN unnest(tags) AS tag
  WHERE user_id = $1 AND org_id = $2
  GROUP BY tag ORDER BY count DESC, tag`;

@Injectable()
export class AutomationRepository extends OwnedRepository<Automation> {
  /** Pages are large enough that others would notice several at once: of a user they are made one after the other. */
  private readonly pages = new KeyedLimit(1);

  constructor(dataSource: DataSource, audit: AuditRepository) {
    super(Automation, dataSource, audit, { kind: 'automation', noun: 'automation', most: MAX_AUTOMATIONS });
  }

  async page(owner: Owner, { tag, ...place }: ListAutomationsQueryDto): Promise<[Automation[], number]> {
    const where = tag === undefined ? owner : { ...owner, tags: ArrayContains([tag]) };
    return this.pages.run(owner.userId, () => newestPage(this, where, place));
  }

  async tagCounts({ userId, orgId }: Owner): Promise<{ tag: string; count: number }[]> {
    return this.query<{ tag: string; count: number }[]>(TAG_COUNTS, [userId, orgId]);
  }

  /** Adds an automation, or returns the one that was made from the same template. Throws as `addOf`. */
  async add(owner: Owner, values: AutomationValues): Promise<{ row: Automation; isNew: boolean }> {
    const id = values.work.template?.id;
    const work = JsonContains({ template: { id } });
    return this.addOf(owner, randomUUID(), values, async (manager) =>
      id === undefined ? null : manager.findOneBy(Automation, { ...owner, work }),
    );
  }

  /** All of an organization that wait for events of the source, in the order in which they are to be locked. */
  async ofSource(orgId: string, source: string): Promise<TriggeredAutomation[]> {
    return this.find({
      select: { id: true, userId: true, trigger: true, state: true },
      where: { orgId, trigger: JsonContains({ source }), userId: Raw(mayAct) },
      order: { id: 'ASC' },
    });
  }

  /** With a schedule, those first whose run comes first. */
  async scheduled(take: number): Promise<Pick<Automation, 'id' | 'nextRunAt'>[]> {
    return this.find({
      select: { id: true, nextRunAt: true },
      where: { state: 'ACTIVE', nextRunAt: Not(IsNull()), userId: Raw(mayAct) },
      order: { nextRunAt: 'ASC' },
      take,
    });
  }

  async setTimes(
    manager: EntityManager,
    id: string,
    times: Partial<Pick<Automation, 'nextRunAt' | 'lastTriggeredAt'>>,
  ): Promise<void> {
    await manager.update(Automation, { id }, { ...times, updatedAt: () => 'updated_at' });
  }
}
