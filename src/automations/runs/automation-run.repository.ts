import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, In, Repository } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { toHexId } from '../../common/identifiers.js';
import { DurableJobs } from '../../database/jobs/durable-jobs.js';
import type { JobQueue } from '../../database/jobs/job-queue.worker.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import type { SuggestedTask } from '../../v1/app-conversations/suggested-task/suggested-task-prompt.js';
import type { Automation } from '../definitions/automation.entity.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { ACTIVE_STATUSES, AutomationRun, type RunStatus, type RunTrigger } from './automation-run.entity.js';
import { filledWork } from './prompt-template.js';
import { admit, mayBegin, type RunCounts } from './run-admission.js';

export interface RunCause {
  trigger: RunTrigger;
  /** Unique among those of its kind. */
  id: string;
}

export interface MadeRun {
  /** Null: not even a skipped one was kept. */
  run: AutomationRun | null;
  /** Why it is not going to begin. */
  reason: string | null;
  isRepeated: boolean;
}

export interface RunEnd {
  status: Extract<RunStatus, 'COMPLETED' | 'FAILED' | 'CANCELLED'>;
  detail: string | null;
  cost?: number | null;
  /** Whether its conversations are to be paused; they are by default. */
  stops?: boolean;
}

export const DEAD_RUNS: JobQueue = {
  name: 'automation-run-dead',
  kind: 'automation-run-dead',
  deadLetter: null,
  retryLimit: 10,
  retryDelaySeconds: 1,
  concurrency: 5,
  pollMs: 5_000,
};

/** The attempts of a run last about two hours, since what its owner may start has a limit, too. */
export const RUNS: JobQueue = {
  name: 'automation-run',
  kind: 'automation-run',
  deadLetter: DEAD_RUNS.name,
  retryLimit: 10,
  retryDelaySeconds: 4,
  concurrency: 20,
  pollMs: 2_000,
};

const COUNTS = `
  SELECT count(*) FILTER (WHERE status IN ('PENDING', 'RUNNING'))::int AS active,
    count(*) FILTER (WHERE created_at > $2 AND status <> 'SKIPPED')::int AS today,
    count(*) FILTER (WHERE created_at > $2 AND status = 'SKIPPED')::int AS "skippedToday"
  FROM automation_runs WHERE automation_id = $1 AND (created_at > $2 OR status IN ('PENDING', 'RUNNING'))`;

const STATUS_COUNTS = `
  SELECT status, count(*)::int AS count FROM automation_runs WHERE automation_id = $1 GROUP BY status`;

const RECENT_TASKS = `
  SELECT tasks FROM automation_runs WHERE automation_id = $1 AND created_at > $2 AND tasks IS NOT NULL`;

/** Runs whose end depends on their conversations, or whose conversations have to be paused. */
const UNSETTLED = `
  SELECT id FROM (
    SELECT id FROM automation_runs WHERE status = 'RUNNING' AND start_task_ids IS NOT NULL
    UNION SELECT id FROM automation_runs WHERE stop_pending) AS run
  WHERE id > $1 ORDER BY id LIMIT $2`;

const REMOVE_OLD = `
  DELETE FROM automation_runs WHERE id IN (
    SELECT id FROM automation_runs
    WHERE created_at < $1 AND status NOT IN ('PENDING', 'RUNNING') AND NOT stop_pending
    ORDER BY created_at LIMIT $2)`;

const A_DAY_MS = 86_400_000;
const OLDEST_FIRST = { createdAt: 'ASC', id: 'ASC' } as const;

/** Changes of a run's status are conditional; each happens once, whichever replica makes it. */
@Injectable()
export class AutomationRunRepository extends Repository<AutomationRun> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly automations: AutomationRepository,
    private readonly jobs: DurableJobs,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly clock: Clock,
  ) {
    super(AutomationRun, dataSource.manager);
  }

  /** Called before a transaction that makes or ends runs. */
  async prepare(): Promise<void> {
    await this.jobs.prepare(RUNS);
  }

  /** Makes the run of a cause in the cause's transaction, which has locked the automation. */
  async make(
    manager: EntityManager,
    automation: Automation,
    { trigger, id: causeId }: RunCause,
    event: unknown = null,
  ): Promise<MadeRun> {
    const { id: automationId, userId, limits, work } = automation;
    const cause = `${trigger}:${causeId}`;
    const known = await manager.findOneBy(AutomationRun, { automationId, cause });
    if (known) {
      return { run: known, reason: known.errorDetail, isRepeated: true };
    }
    const now = this.now();
    const [counts] = await manager.query<[RunCounts]>(COUNTS, [automationId, yesterday(now)]);
    const { admission, reason } = admit(limits, counts);
    if (admission === 'refuse') {
      return { run: null, reason, isRepeated: false };
    }
    if (admission === 'replace') {
      await this.cancelOldest(manager, automationId, counts.active - limits.limit + 1);
    }
    const id = randomUUID();
    const isSkipped = admission === 'skip';
    await manager.insert(AutomationRun, {
      id,
      automationId,
      userId,
      cause,
      triggerSource: trigger,
      status: isSkipped ? 'SKIPPED' : 'PENDING',
      work: filledWork(work, event),
      errorDetail: reason,
      createdAt: now,
      completedAt: isSkipped ? now : null,
    });
    await this.automations.setTimes(manager, automationId, { lastTriggeredAt: now });
    if (!isSkipped) {
      await this.send(manager, id);
    }
    return { run: await manager.findOneByOrFail(AutomationRun, { id }), reason, isRepeated: false };
  }

  /** Takes a run that waits, if it is its turn; null when it is not, or when the run does not wait any more. */
  async begin(id: string): Promise<AutomationRun | null> {
    const waiting = await this.findOneBy({ id, status: 'PENDING' });
    if (waiting === null) {
      return null;
    }
    return this.manager.transaction(async (manager) => {
      const automation = await this.automations.lock(manager, { id: waiting.automationId });
      const running = { automationId: waiting.automationId, status: 'RUNNING' } as const;
      if (
        automation === null ||
        !mayBegin(automation.limits.limit, await manager.countBy(AutomationRun, running))
      ) {
        return null;
      }
      const begun = { status: 'RUNNING', startedAt: this.now() } as const;
      const { affected } = await manager.update(AutomationRun, { id, status: 'PENDING' }, begun);
      return affected === 1 ? manager.findOneBy(AutomationRun, { id }) : null;
    });
  }

  /** Keeps what the run is going to start, once. `choose` gets the tasks that its automation took up within a day. */
  async choose(
    { id, automationId }: AutomationRun,
    choose: (recent: readonly SuggestedTask[]) => Pick<AutomationRun, 'conversationIds' | 'tasks'>,
  ): Promise<AutomationRun> {
    return this.manager.transaction(async (manager) => {
      // Runs that begin at the same time choose one after the other.
      await this.automations.lock(manager, { id: automationId });
      const values = [automationId, yesterday(this.now())];
      const rows = await manager.query<{ tasks: SuggestedTask[] }[]>(RECENT_TASKS, values);
      await manager
        .createQueryBuilder()
        .update(AutomationRun)
        .set(choose(rows.flatMap(({ tasks }) => tasks)))
        .where({ id, status: 'RUNNING' })
        .andWhere(`conversation_ids = '{}'`)
        .execute();
      return manager.findOneByOrFail(AutomationRun, { id });
    });
  }

  /** Unless the run has ended meanwhile. */
  async setStarted(id: string, startTaskIds: string[]): Promise<void> {
    await this.update({ id, status: 'RUNNING' }, { startTaskIds });
  }

  /** As `end`, in a transaction of its own. */
  async finish(id: string, end: RunEnd): Promise<void> {
    await this.prepare();
    await this.manager.transaction(async (manager) => void (await this.end(manager, id, end)));
  }

  /** Ends a run, and lets the next one begin; false when it was over. */
  async end(
    manager: EntityManager,
    id: string,
    { status, detail, cost = null, stops = true }: RunEnd,
  ): Promise<boolean> {
    const { affected } = await manager.update(
      AutomationRun,
      { id, status: In([...ACTIVE_STATUSES]) },
      { status, errorDetail: detail, cost, completedAt: this.now() },
    );
    if (affected !== 1) {
      return false;
    }
    const { automationId, userId, conversationIds } = await manager.findOneByOrFail(AutomationRun, { id });
    const [conversationId = null] = conversationIds.map(toHexId);
    if (stops && conversationId !== null) {
      await manager.update(AutomationRun, { id }, { stopPending: true });
    }
    await this.webhooks.publish(manager, userId, {
      type: 'automation.run.finished',
      data: {
        run_id: id,
        automation_id: automationId,
        status,
        cost,
        conversation_id: conversationId,
        error: detail,
      },
    });
    const next = await manager.findOne(AutomationRun, {
      where: { automationId, status: 'PENDING' },
      order: OLDEST_FIRST,
    });
    if (next !== null) {
      await this.send(manager, next.id);
    }
    return true;
  }

  async setStopped(id: string): Promise<void> {
    await this.update({ id }, { stopPending: false });
  }

  async statusCounts(automationId: string): Promise<Record<string, number>> {
    const rows = await this.query<{ status: string; count: number }[]>(STATUS_COUNTS, [automationId]);
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  }

  /** In the order of their ids, beginning after one of them. */
  async unsettled(afterId: string, limit: number): Promise<AutomationRun[]> {
    const rows = await this.query<{ id: string }[]>(UNSETTLED, [afterId, limit]);
    const ids = rows.map(({ id }) => id);
    return ids.length === 0 ? [] : this.find({ where: { id: In(ids) }, order: { id: 'ASC' } });
  }

  async removeOlderThan(seconds: number, batch: number): Promise<number> {
    const before = new Date(this.clock.now() - seconds * 1000);
    const [, removed] = await this.query<[unknown, number]>(REMOVE_OLD, [before, batch]);
    return removed;
  }

  private async cancelOldest(manager: EntityManager, automationId: string, count: number): Promise<void> {
    const where = { automationId, status: In([...ACTIVE_STATUSES]) };
    const replaced = await manager.find(AutomationRun, { where, order: OLDEST_FIRST, take: count });
    for (const { id } of replaced) {
      await this.end(manager, id, { status: 'CANCELLED', detail: 'A newer run has replaced it.' });
    }
  }

  /** The job exists from the commit that made or freed the run. */
  private async send(manager: EntityManager, runId: string): Promise<void> {
    await this.jobs.send(manager, RUNS.name, { runId });
  }

  private now(): Date {
    return new Date(this.clock.now());
  }
}

function yesterday(now: Date): Date {
  return new Date(now.getTime() - A_DAY_MS);
}
