import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import { ConversationActionsService } from '../../v1/app-conversations/conversation-actions.service.js';
import { ConversationQueries } from '../../v1/app-conversations/conversation.queries.js';
import { StartTaskQueries } from '../../v1/app-conversations/start-task.queries.js';
import type { AutomationRun } from './automation-run.entity.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import { lastStart } from './automation-run.worker.js';
import { endOfRun } from './run-outcome.js';

const EVERY_MS = 2_000;
const BATCH = 500;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
const PRUNE_EVERY_MS = 3_600_000;
const PRUNE_BATCH = 1_000;
const WORKING: readonly unknown[] = ['idle', 'running', 'waiting_for_confirmation'];

/** Ends runs whose conversations are over, pauses those of runs that were stopped, and removes old runs. */
@Injectable()
export class RunSettler extends BackgroundLoop {
  private pruneAt = 0;

  constructor(
    private readonly runs: AutomationRunRepository,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly actions: ConversationActionsService,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('Automations'), 'failed to settle runs');
  }

  /** Looks now instead of within seconds. */
  async settleNow(): Promise<void> {
    await this.loop.now();
  }

  /** Removes now instead of within the hour. */
  async prune(): Promise<void> {
    const { automationRunRetentionSeconds } = this.config.database;
    let removed: number;
    do {
      removed = await this.runs.removeOlderThan(automationRunRetentionSeconds, PRUNE_BATCH);
    } while (removed === PRUNE_BATCH);
  }

  protected async work(): Promise<void> {
    let batch: AutomationRun[];
    let last = BEFORE_ALL;
    do {
      batch = await this.runs.unsettled(last, BATCH);
      for (const run of batch) {
        await this.settleAlone(run);
      }
      last = batch.at(-1)?.id ?? last;
    } while (batch.length === BATCH);
    if (this.clock.now() >= this.pruneAt) {
      this.pruneAt = this.clock.now() + PRUNE_EVERY_MS;
      await this.prune();
    }
  }

  /** The runs of other users do not wait for one that fails. */
  private async settleAlone(run: AutomationRun): Promise<void> {
    try {
      await (run.stopPending ? this.stop(run) : this.settleOne(run));
    } catch (error) {
      this.logger.warn('failed to settle run', { run_id: run.id, error: errorMessage(error) });
    }
  }

  private async settleOne(run: AutomationRun): Promise<void> {
    const rows = await this.conversations.findAll(run.userId, run.conversationIds);
    const starts = await this.startTasks.batch(run.userId, run.startTaskIds ?? []);
    const now = run.conversationIds.map((id, index) => ({
      conversation: rows.get(id) ?? null,
      start: starts[index] ?? null,
    }));
    const end = endOfRun(run, now, this.clock.now());
    if (end !== null) {
      await this.runs.finish(run.id, end);
    }
  }

  private async stop(run: AutomationRun): Promise<void> {
    const stopped = await Promise.all(run.conversationIds.map((id) => this.pause(run.userId, id)));
    if (stopped.every(Boolean)) {
      await this.runs.setStopped(run.id);
    }
  }

  /** False while its start is under way. */
  private async pause(userId: string, id: string): Promise<boolean> {
    const [row, start] = await Promise.all([
      this.conversations.find(userId, id),
      lastStart(this.startTasks, userId, id),
    ]);
    if (start !== null && !['READY', 'ERROR'].includes(start.status)) {
      return false;
    }
    if (row?.sandbox_status === 'RUNNING' && WORKING.includes(row.execution_status)) {
      try {
        await this.actions.pause(userId, id);
      } catch (error) {
        // It ended in this moment, or its sandbox did.
        if (!(error instanceof DomainError && ['not_found', 'conflict'].includes(error.kind))) {
          throw error;
        }
      }
    }
    return true;
  }
}
