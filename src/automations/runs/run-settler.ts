import { Injectable, Logger } from '@nestjs/common';
import { jittered } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { ConversationActionsService } from '../../v1/app-conversations/conversation-actions.service.js';
import { ConversationQueries } from '../../v1/app-conversations/conversation.queries.js';
import type { ConversationRow } from '../../v1/app-conversations/conversation-row.js';
import { StartTaskQueries, type StartTaskRow } from '../../v1/app-conversations/start-task.queries.js';
import type { RunProgress } from './automation-run.entity.js';
import { AutomationRunRepository, type RunEnd } from './automation-run.repository.js';

const EVERY_MS = 2_000;
/** While no run goes on. */
const IDLE_MS = 15_000;
const BATCH = 500;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** Ends runs whose conversations are over, pauses those of runs that were stopped, and removes old runs. */
@Injectable()
export class RunSettler extends BackgroundLoop {
  /** Under way, beside the others, since a sandbox may not answer. */
  private readonly stops = new Set<string>();

  constructor(
    private readonly runs: AutomationRunRepository,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly actions: ConversationActionsService,
    private readonly clock: Clock,
    private readonly config: AppConfig,
    private readonly notifications: DatabaseNotifications,
  ) {
    super(EVERY_MS, new Logger('Automations'), 'failed to settle runs');
  }

  override async onApplicationBootstrap(): Promise<void> {
    const soon = (): void => this.loop.within(EVERY_MS);
    this.notifications.listen(this.runs.leases.definition.channel, soon, soon);
    await super.onApplicationBootstrap();
  }

  protected async work(): Promise<number | void> {
    let batch: RunProgress[] = [];
    let isIdle = this.stops.size === 0;
    do {
      batch = await this.runs.unsettled(batch.at(-1)?.id ?? BEFORE_ALL, BATCH);
      isIdle &&= batch.length === 0;
      for (const run of batch.filter(({ id }) => !this.stops.has(id))) {
        const settled = this.settleAlone(run);
        if (run.stopPending) {
          this.stops.add(run.id);
          this.beside(settled.finally(() => this.stops.delete(run.id)));
        } else {
          await settled;
        }
      }
    } while (batch.length === BATCH);
    await this.runs.removeOlderThan(this.config.database.automationRunRetentionSeconds, BATCH);
    return isIdle ? jittered(IDLE_MS) : undefined;
  }

  /** The runs of other users do not wait for one that fails. */
  private async settleAlone(run: RunProgress): Promise<void> {
    try {
      await (run.stopPending ? this.stop(run) : this.settle(run));
    } catch (error) {
      this.logger.warn('failed to settle run', { run_id: run.id, error: errorMessage(error) });
    }
  }

  private async settle(run: RunProgress): Promise<void> {
    const { id, userId, conversationIds, startTaskIds } = run;
    const owner = { id: userId, isAdmin: false, repositories: null };
    const rows = await this.conversations.findAll(owner, conversationIds);
    const starts = await this.startTasks.batch(owner, startTaskIds ?? []);
    const held = conversationIds.map((each, index) => ({
      conversation: rows.get(each) ?? null,
      start: starts[index] ?? null,
    }));
    const end = endOfRun(run, held, this.clock.now());
    if (end !== null) {
      await this.runs.finish(id, { ...end, cost: await this.cost(run) });
    }
  }

  private async stop({ id, userId, conversationIds }: RunProgress): Promise<void> {
    const all = await this.conversations.withBelow(userId, conversationIds);
    const ids = new Set(all.flatMap((each) => each.ids));
    const areStopped = await Promise.all([...ids].map((each) => this.actions.stop(userId, each)));
    if (areStopped.every(Boolean)) {
      await this.runs.update(
        { id },
        { stopPending: false, cost: await this.cost({ userId, conversationIds }) },
      );
    }
  }

  private async cost(run: Pick<RunProgress, 'userId' | 'conversationIds'>): Promise<number | null> {
    const all = await this.conversations.withBelow(run.userId, run.conversationIds);
    const known = all.flatMap(({ cost }) => cost ?? []);
    return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
  }
}

/** A conversation of a run as it is now; null for what is not there. */
export interface ConversationOfRun {
  start: Pick<StartTaskRow, 'status' | 'detail'> | null;
  conversation: Pick<ConversationRow, 'execution_status' | 'error' | 'sandbox_status' | 'metrics'> | null;
}

/** What a run's conversations make of it; null while one of them goes on within the run's bounds. */
export function endOfRun(
  { startedAt, work: { timeout, max_budget_per_run: budget } }: Pick<RunProgress, 'startedAt' | 'work'>,
  conversations: readonly ConversationOfRun[],
  now: number,
): RunEnd | null {
  const costs = conversations.map(({ conversation }) => conversation?.metrics?.accumulated_cost ?? 0);
  const failures = conversations.map(failureOf);
  if (!failures.includes(null)) {
    const detail = failures.find((failure) => failure !== '') ?? null;
    return { status: detail === null ? 'COMPLETED' : 'FAILED', detail, stops: false };
  }
  if (budget !== null && costs.reduce((sum, each) => sum + each, 0) > budget) {
    return stopped(`cost more than ${budget} USD, its budget`);
  }
  const isLate = timeout !== null && startedAt !== null && now - startedAt.getTime() > timeout * 1000;
  return isLate ? stopped(`took longer than ${timeout} s (timeout)`) : null;
}

function stopped(why: string): RunEnd {
  return { status: 'FAILED', detail: `It ${why}, and was stopped.`, stops: true };
}

/** Empty where nothing went wrong; null while it goes on. */
function failureOf({ start, conversation }: ConversationOfRun): string | null {
  if (start?.status === 'ERROR') {
    return start.detail || 'Its conversation could not be started.';
  }
  if (conversation === null) {
    return start === null || start.status === 'READY' ? 'Its conversation was deleted.' : null;
  }
  const { execution_status: status, error, sandbox_status: sandbox } = conversation;
  switch (status) {
    case 'finished':
      return '';
    case 'error':
    case 'stuck':
      return error === null ? `Its conversation ended with ${status}.` : `${error.code}: ${error.detail}`;
    default:
      return sandbox === null || ['ERROR', 'MISSING', 'DELETING'].includes(sandbox)
        ? 'The sandbox of its conversation is gone.'
        : null;
  }
}
