import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  DataSource,
  type EntityManager,
  In,
  IsNull,
  LessThanOrEqual,
  MoreThan,
  MoreThanOrEqual,
  Not,
  Raw,
  Repository,
} from 'typeorm';
import { mayAct } from '../../auth/user.repository.js';
import type { AuditAction } from '../../audit/audit-action.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import type { Owner } from '../../auth/owned.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError, found } from '../../common/errors/domain-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { currentTraceparent } from '@slipway/common/spans.js';
import type { OffsetQueryDto } from '@slipway/api/pagination/page.dto.js';
import { newestPage } from '@slipway/database/page-bytes.js';
import { type Lease, LeasedRows, type LeasedTable } from '@slipway/database/leased-rows.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import { ConversationQueries } from '../../v1/app-conversations/conversation.queries.js';
import { FollowedPullRequestRepository } from '../../v1/app-conversations/followed/followed-pull-request.repository.js';
import type { SuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import { Automation, AutomationRepository } from '../definitions/automation.repository.js';
import type { RunEvent } from '../events/event-subject.js';
import { AutomationRun, causeOf, type RunProgress } from './automation-run.entity.js';
import { admit, type RunCounts, SPENT } from './run-admission.js';
import { filledPrompt } from './prompt-template.js';

export interface MadeRun {
  /** Null: not even a skipped one was kept. */
  run: AutomationRun | null;
  /** Why it is not going to begin. */
  reason: string | null;
}

export interface RunEnd {
  status: 'COMPLETED' | 'FAILED' | 'CANCELLED';
  detail: string | null;
  cost?: number | null;
  /** Whether its conversations are to be paused; they are by default. */
  stops?: boolean;
}

/** What a run is made for. */
export interface RunCause {
  /** Unique among those of its trigger. */
  id: string;
  payload?: unknown;
  actor?: string | null;
  event?: RunEvent | null;
}

/** A run that is not begun, or has not started all of its conversations. */
const LEASED: LeasedTable = {
  table: 'automation_runs',
  key: { column: 'id', type: 'uuid' },
  owner: 'r.user_id',
  condition: `r.status IN ('PENDING', 'RUNNING') AND r.start_task_ids IS NULL AND ${mayAct('r.user_id')}`,
  returning: 'r.traceparent',
  channel: 'automation_runs',
};

export interface LeasedRun extends Lease {
  traceparent: string | null;
}

const COUNTS = `
  SELECT count(*) FILTER (WHERE status IN ('PENDING', 'RUNNING'))::int AS active,
    coalesce(sum(pg_column_size(work)) FILTER (WHERE status = 'PENDING'), 0)::float AS "waitingBytes",
    count(*) FILTER (WHERE created_at > $2 AND status <> 'SKIPPED')::int AS today,
    count(*) FILTER (WHERE created_at > $2 AND status = 'SKIPPED')::int AS "skippedToday",
    count(*) FILTER (WHERE created_at > $2 AND status <> 'SKIPPED' AND actor = $3)::int AS "ofActorToday"
  FROM automation_runs
  WHERE automation_id = $1 AND (created_at > $2 OR status IN ('PENDING', 'RUNNING'))`;

const STATUS_COUNTS = `
  SELECT status, count(*)::int AS count FROM automation_runs WHERE automation_id = $1 GROUP BY status`;

/** Each half has an index. */
const UNSETTLED = `
  SELECT id, user_id AS "userId", conversation_ids AS "conversationIds", start_task_ids AS "startTaskIds",
    stop_pending AS "stopPending", started_at AS "startedAt",
    jsonb_build_object('timeout', work->'timeout', 'max_budget_per_run', work->'max_budget_per_run') AS work
  FROM automation_runs WHERE id > $1 AND id IN (
    SELECT id FROM automation_runs WHERE status = 'RUNNING' AND start_task_ids IS NOT NULL
    UNION SELECT id FROM automation_runs WHERE stop_pending)
  ORDER BY id LIMIT $2`;

/** Work of a run that has ended: lists show no more of it. */
const WORK_DONE = `jsonb_build_object('timeout', work->'timeout')`;

/** Locks the run's automation, so that a run made while another one ends sees that it has ended. */
const LOCK_AUTOMATION = `
  SELECT FROM automations WHERE id = (SELECT automation_id FROM automation_runs WHERE id = $1) FOR UPDATE`;

const REMOVE_OLD = `
  DELETE FROM automation_runs WHERE id IN (
    SELECT id FROM automation_runs
    WHERE created_at < $1 AND status NOT IN ('PENDING', 'RUNNING') AND NOT stop_pending
    ORDER BY created_at LIMIT $2)`;

const A_DAY_MS = 86_400_000;
/** How much the clocks of two hosts may differ. */
const CLOCK_SKEW_MS = 5_000;
/** The newest: what follows a pull request for longer is seldom. */
const RUNS_LOOKED_AT = 200;
const IS_ACTIVE = { status: In(['PENDING', 'RUNNING']) };
const OLDEST_FIRST = { createdAt: 'ASC', id: 'ASC' } as const;

/**
 * Changes of a run's status are conditional; each happens once, whichever replica makes it. Methods with an owner throw
 * DomainError not_found for what is not the owner's.
 */
@Injectable()
export class AutomationRunRepository extends Repository<AutomationRun> {
  readonly leases: LeasedRows<LeasedRun>;

  constructor(
    dataSource: DataSource,
    private readonly automations: AutomationRepository,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly followed: FollowedPullRequestRepository,
    private readonly audit: AuditRepository,
    private readonly clock: Clock,
    private readonly conversations: ConversationQueries,
  ) {
    super(AutomationRun, dataSource.manager);
    this.leases = new LeasedRows(dataSource, clock, LEASED);
  }

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.manager.transaction(work);
  }

  /** Makes a run by hand, also of an inactive automation. @throws DomainError rate_limited beyond the day's maximum */
  async dispatch(owner: Owner, id: string, key: string | null): Promise<AutomationRun> {
    return this.transaction(async (manager) => {
      const automation = found(await this.automations.lock(manager, { ...owner, id }), 'automation');
      const { run, reason } = await this.make(manager, automation, 'manual', { id: key ?? randomUUID() });
      if (run === null) {
        throw new DomainError('rate_limited', reason ?? '', { retryAfterSeconds: 3_600 });
      }
      return run;
    });
  }

  /** Cancels a run; its conversations are paused soon after. @throws DomainError conflict for a run that is over */
  async cancel({ userId }: Owner, id: string): Promise<AutomationRun> {
    return this.transaction(async (manager) => {
      const run = found(await manager.findOneBy(AutomationRun, { id, userId }), 'run');
      if (!(await this.end(manager, id, { status: 'CANCELLED', detail: 'It was cancelled.' }))) {
        throw new DomainError('conflict', 'This run is over.');
      }
      await this.record(manager, 'automation.cancel_run', run);
      return manager.findOneByOrFail(AutomationRun, { id });
    });
  }

  /**
   * Makes the run of a cause in the cause's transaction, which has locked the automation.
   */
  async make(
    manager: EntityManager,
    automation: Automation,
    trigger: AutomationRun['triggerSource'],
    { id: causeId, payload = null, actor = null, event = null }: RunCause,
  ): Promise<MadeRun> {
    const { id: automationId, userId, work } = automation;
    const cause = `${trigger}:${causeId}`;
    const known = await manager.findOneBy(AutomationRun, { automationId, cause });
    if (known) {
      return { run: known, reason: known.errorDetail };
    }
    const now = this.now();
    const counts = await this.counts(manager, automation, actor);
    const { admission, reason } = admit(work, automation.trigger, counts);
    if (admission === 'refuse') {
      return { run: null, reason };
    }
    if (admission === 'replace') {
      const which = { where: { automationId, ...IS_ACTIVE }, order: OLDEST_FIRST };
      const take = counts.active - work.concurrency.limit + 1;
      for (const { id } of await manager.find(AutomationRun, { ...which, take })) {
        await this.end(manager, id, { status: 'CANCELLED', detail: 'A newer run has replaced it.' });
      }
    }
    const isSkipped = admission === 'skip';
    const run = await manager.save(AutomationRun, {
      id: randomUUID(),
      automationId,
      userId,
      cause,
      triggerSource: trigger,
      actor,
      event,
      status: isSkipped ? 'SKIPPED' : 'PENDING',
      work: isSkipped
        ? { timeout: work.timeout }
        : { ...work, prompt: work.prompt && filledPrompt(work.prompt, payload) },
      errorDetail: reason,
      createdAt: now,
      completedAt: isSkipped ? now : null,
      dueAt: isSkipped ? null : now,
      traceparent: currentTraceparent(),
    });
    await this.automations.setTimes(manager, automationId, { lastTriggeredAt: now });
    if (!isSkipped) {
      await this.leases.wake(manager);
    }
    if (trigger === 'manual') {
      await this.record(manager, 'automation.dispatch', run);
    }
    return { run, reason };
  }

  /** Whether the account of the owner may have been at work for a run of the automation. `at`: epoch milliseconds */
  async wasAtWork(automationId: string, at: number): Promise<boolean> {
    const [from, until] = [new Date(at - CLOCK_SKEW_MS), new Date(at + CLOCK_SKEW_MS)];
    const begun = await this.find({
      select: { conversationIds: true, completedAt: true },
      where: { automationId, startedAt: LessThanOrEqual(until) },
      order: { startedAt: 'DESC' },
      take: RUNS_LOOKED_AT,
    });
    const isUnderWay = begun.some(({ completedAt }) => completedAt === null || completedAt >= from);
    const ids = begun.flatMap(({ conversationIds }) => conversationIds);
    return isUnderWay || this.followed.wereAtWork(ids, from);
  }

  /** Begins a run whose turn it is. Null unless it has begun, and something is left to start. */
  async begin(id: string): Promise<AutomationRun | null> {
    const run = await this.findOneBy({ id });
    return this.transaction(async (manager) => {
      const automation = run && (await this.automations.lock(manager, { id: run.automationId }));
      if (run === null || automation === null) {
        return null;
      }
      const { max_budget_per_month: budget, concurrency } = automation.work;
      const left = (budget ?? Infinity) - (await this.counts(manager, automation)).costThisMonth;
      const pending = { id, status: 'PENDING' } as const;
      if (left <= 0 && (await manager.existsBy(AutomationRun, pending))) {
        await this.end(manager, id, { status: 'CANCELLED', detail: SPENT, stops: false });
      }
      const running = { automationId: automation.id, status: 'RUNNING' } as const;
      if ((await manager.countBy(AutomationRun, running)) < concurrency.limit) {
        const most = Math.min(run.work.max_budget_per_run ?? Infinity, left);
        const work = { ...run.work, max_budget_per_run: most === Infinity ? null : most };
        const begun: Partial<AutomationRun> = { status: 'RUNNING', startedAt: this.now(), work };
        await manager.update(AutomationRun, pending, begun as object);
      }
      return manager.findOneBy(AutomationRun, { id, status: 'RUNNING', startTaskIds: IsNull() });
    });
  }

  /**
   * Keeps what the run is going to start, once.
   * @param open null for a run with a prompt; of others, those that a run of this day has taken up are left out
   */
  async choose(run: AutomationRun, open: readonly SuggestedTaskDto[] | null): Promise<AutomationRun> {
    const { id, automationId, work } = run;
    return this.manager.transaction(async (manager) => {
      // Runs that begin at the same time choose one after the other.
      await this.automations.lock(manager, { id: automationId });
      const where = { automationId, createdAt: MoreThan(this.now(A_DAY_MS)), tasks: Not(IsNull()) };
      const recent = await manager.find(AutomationRun, { select: { tasks: true }, where });
      const taken = new Set(recent.flatMap(({ tasks }) => (tasks ?? []).map(taskName)));
      const tasks = open && open.filter((task) => !taken.has(taskName(task))).slice(0, work.tasks?.limit);
      const isUnchosen = Raw((column) => `${column} = '{}'`);
      const unchosen = { id, status: 'RUNNING', conversationIds: isUnchosen } as const;
      const conversationIds = (tasks ?? [null]).map(() => randomUUID());
      await manager.update(AutomationRun, unchosen, { tasks, conversationIds });
      return manager.findOneByOrFail(AutomationRun, { id });
    });
  }

  /** What was started for a run that has ended meanwhile is to be paused. */
  async setStarted(id: string, startTaskIds: string[]): Promise<void> {
    await this.update({ id }, { startTaskIds, stopPending: () => "status <> 'RUNNING'" });
    await this.leases.wake(this.manager);
  }

  /** Does what `end` does, in a transaction of its own. */
  async finish(id: string, end: RunEnd): Promise<void> {
    await this.transaction((manager) => this.end(manager, id, end));
  }

  /** Returns runs ordered by id that end as their conversations do, or whose conversations still have to be paused. */
  async unsettled(afterId: string, take: number): Promise<RunProgress[]> {
    return this.query<RunProgress[]>(UNSETTLED, [afterId, take]);
  }

  /** Newest first, without what they do. */
  async page(automationId: string, place: OffsetQueryDto): Promise<[AutomationRun[], number]> {
    return newestPage(this, { automationId }, place, { work: WORK_DONE });
  }

  async statusCounts(automationId: string): Promise<Record<string, number>> {
    const rows = await this.query<{ status: string; count: number }[]>(STATUS_COUNTS, [automationId]);
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  }

  async removeOlderThan(seconds: number, batch: number): Promise<void> {
    await this.query(REMOVE_OLD, [this.now(seconds * 1000), batch]);
  }

  private async counts(
    manager: EntityManager,
    automation: Automation,
    actor: string | null = null,
  ): Promise<RunCounts> {
    const { id, work } = automation;
    const [counts] = await manager.query<[RunCounts]>(COUNTS, [id, this.now(A_DAY_MS), actor]);
    // The runs of a month are many: they are read where that counts.
    const isLimited = work.max_budget_per_month !== null;
    return { ...counts, costThisMonth: isLimited ? await this.costThisMonth(manager, automation) : 0 };
  }

  /** Counts what conversations have cost by now, as they may go on after their run; a deleted one costs what its run recorded. */
  private async costThisMonth(manager: EntityManager, { id, userId }: Automation): Promise<number> {
    const runs = await manager.find(AutomationRun, {
      select: { id: true, cost: true, conversationIds: true },
      where: { automationId: id, createdAt: MoreThanOrEqual(new Date(this.now().toISOString().slice(0, 7))) },
    });
    const ids = runs.flatMap(({ conversationIds }) => conversationIds);
    const costs = new Map(
      (await this.conversations.withBelow(userId, ids, manager)).map(({ top, cost }) => [top, cost ?? 0]),
    );
    return runs.reduce((sum, { cost, conversationIds }) => {
      const present = conversationIds.reduce((all, each) => all + (costs.get(each) ?? 0), 0);
      return sum + Math.max(cost ?? 0, present);
    }, 0);
  }

  /** Ends a run, and lets the next one begin; false when it was over. */
  private async end(manager: EntityManager, id: string, end: RunEnd): Promise<boolean> {
    const { status, detail, cost = null, stops = true } = end;
    const ended = { status, errorDetail: detail, cost, completedAt: this.now(), stopPending: stops };
    await manager.query(LOCK_AUTOMATION, [id]);
    const done = { ...ended, work: () => WORK_DONE };
    const { affected } = await manager.update(AutomationRun, { id, ...IS_ACTIVE }, done);
    if (affected !== 1) {
      return false;
    }
    const { automationId, userId, conversationIds } = await manager.findOneByOrFail(AutomationRun, { id });
    const [conversation_id = null] = conversationIds.map(toHexId);
    await this.webhooks.publish(manager, userId, {
      type: 'automation.run.finished',
      data: { run_id: id, automation_id: automationId, status, cost, conversation_id, error: detail },
    });
    const where = { automationId, status: 'PENDING' } as const;
    const next = await manager.findOne(AutomationRun, { where, order: OLDEST_FIRST });
    if (next !== null) {
      const isDue = { dueAt: this.now(), traceparent: currentTraceparent() };
      await manager.update(AutomationRun, { id: next.id }, isDue);
    }
    await this.leases.wake(manager);
    return true;
  }

  private async record(manager: EntityManager, action: AuditAction, run: AutomationRun): Promise<void> {
    const { automationId: resourceId, userId: ownerId } = run;
    await this.audit.append(manager, { action, resourceId, ownerId, details: causeOf(run) });
  }

  private now(msAgo = 0): Date {
    return new Date(this.clock.now() - msAgo);
  }
}

function taskName({ git_provider, repo, task_type, issue_number }: SuggestedTaskDto): string {
  return `${git_provider} ${repo} ${task_type} ${issue_number}`;
}
